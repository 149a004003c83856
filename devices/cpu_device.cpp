#include "devices/cpu_device.h"

#include <algorithm>
#include <thread>

#include "devices/tracking_allocator.h"

namespace tagflow::devices {
namespace {

class CpuDevice final : public Device {
 public:
  // Counting costs some 50 ns for each buffer, three times the host allocator's
  // time, and threads would contend for the counters: it is done only if
  // there is a limit.
  explicit CpuDevice(graph::DeviceInfo info) : Device(std::move(info)) {
    if (this->info().memory_limit > 0)
      tracking_ = TrackingAllocator::make(
          {this->info().name.to_string(), this->info().memory_limit, true});
  }

  Allocator& allocator() override {
    return tracking_ ? static_cast<Allocator&>(*tracking_) : host_allocator();
  }
  MemoryStats memory() const override {
    return tracking_ ? tracking_->stats() : MemoryStats();
  }
  MemoryLedger* ledger() override {
    return tracking_ ? &tracking_->ledger() : nullptr;
  }

 private:
  TrackingAllocator::Owner tracking_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(graph::DeviceInfo info,
                                        int64_t memory_limit) {
  info.memory_limit = memory_limit;
  info.kernels_at_once = int(std::max(1u, std::thread::hardware_concurrency()));
  return std::make_unique<CpuDevice>(std::move(info));
}

DeviceType cpu_device_type() {
  DeviceType type;
  type.keyword = "cpu";
  type.type = "CPU";
  type.summary = "the processor; its kernels run on the engine's workers";
  type.options = {{"memory", Quantity::kBytes,
                   "most bytes that its tensors may take (no limit)"}};
  type.make = [](const DeviceSpec& spec,
                 graph::DeviceInfo info) -> Result<std::unique_ptr<Device>> {
    const auto memory = spec.options.find("memory");
    return make_cpu_device(std::move(info),
                           memory == spec.options.end() ? 0 : memory->second);
  };
  return type;
}

}  // namespace tagflow::devices
