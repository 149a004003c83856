// What a kernel's context offers.
#include "devices/kernel.h"

#include <doctest/doctest.h>

#include <optional>

#include "devices/tracking_allocator.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

// A node Neg whose kernel would allocate from `allocator`.
class Context {
 public:
  Context(Tensor input, Allocator& allocator) {
    auto* placeholder =
        *graph_.add("x", "Placeholder", {}, {{"dtype", input.dtype()}});
    const std::vector<graph::Endpoint> endpoints = {{placeholder, 0}};
    auto* node = *graph_.add("op", "Neg", endpoints, {});
    inputs_.push_back(std::move(input));
    context.emplace(node, inputs_, outputs_, &step_, &tag_, &allocator);
  }

  std::optional<KernelContext> context;

 private:
  graph::Graph graph_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_{1};
  const StepInfo step_;
  const Tag tag_;
};

bool forwards(Allocator& from, Allocator& to) {
  Context context(*Tensor::allocate(DataType::kFloat, {100}, from), to);
  const Result<Tensor*> output =
      context.context->forward_or_allocate(0, 0, {100});
  REQUIRE(output.ok());
  return (*output)->buffer() == context.context->input(0).buffer();
}

}  // namespace

TEST_CASE("an input is overwritten where it is in the same memory") {
  const auto limited = TrackingAllocator::make({"CPU:0", 1 << 20});
  const auto device = TrackingAllocator::make({"STREAM:0", 1 << 20, false});
  const auto other = TrackingAllocator::make({"STREAM:1", 1 << 20, false});
  CHECK(forwards(host_allocator(), host_allocator()));
  CHECK(forwards(host_allocator(), *limited));
  CHECK(forwards(*limited, host_allocator()));
  CHECK(forwards(*device, *device));
  CHECK_FALSE(forwards(host_allocator(), *device));
  CHECK_FALSE(forwards(*device, host_allocator()));
  CHECK_FALSE(forwards(*device, *other));
}

TEST_CASE(
    "an output beyond the allocator's limit has its statistics in the "
    "error") {
  const auto limited = TrackingAllocator::make({"CPU:0", 64});
  Context context(Tensor::scalar(1.0f), *limited);
  expect_error(context.context->allocate_output(0, {100}),
               Code::kResourceExhausted,
               "float[100] needs 400 bytes of CPU:0 (0 B in use of 64 B, peak "
               "0 B, 0 buffers)");
  expect_error(context.context->allocate_temp(DataType::kInt64, {9}),
               Code::kResourceExhausted, "int64[9] needs 72 bytes of CPU:0");
}

}  // namespace tagflow::devices
