#include "devices/cpu_device.h"

#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

graph::DeviceInfo cpu_info() {
  graph::DeviceInfo info;
  info.name = {"localhost", 0, 0, "CPU", 0};
  return info;
}

}  // namespace

TEST_CASE("a CPU without a limit is the host's memory, and counts nothing") {
  const auto device = make_cpu_device(cpu_info());
  CHECK(&device->allocator() == &host_allocator());
  CHECK(device->accelerator() == nullptr);
  CHECK(device->info().host_memory);
  CHECK(device->info().kernels_at_once >= 1);
  const Tensor tensor =
      *Tensor::allocate(DataType::kFloat, {100}, device->allocator());
  CHECK(device->memory().in_use == 0);
}

TEST_CASE("a CPU with a limit counts, and refuses what is beyond it") {
  Tensor kept;
  {
    const auto device = make_cpu_device(cpu_info(), 4096);
    CHECK(device->info().memory_limit == 4096);
    kept = *Tensor::allocate(DataType::kFloat, {500}, device->allocator());
    CHECK(device->memory().in_use == 2048);
    CHECK(host_readable(kept));
    expect_error(
        Tensor::allocate(DataType::kFloat, {600}, device->allocator()),
        Code::kResourceExhausted,
        "[tensor] out of memory: float[600] needs 2400 bytes of "
        "/job:localhost/replica:0/task:0/device:CPU:0 (2 KiB in use of 4 KiB, "
        "peak 2 KiB, 1 buffer)");
  }
  kept.mutable_data<float>()[499] = 1;
  CHECK(kept.clone().data<float>()[499] == 1);
}

}  // namespace tagflow::devices
