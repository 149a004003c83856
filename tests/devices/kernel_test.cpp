// The context of a kernel.
#include "devices/kernel.h"

#include <doctest/doctest.h>

#include <new>
#include <optional>

#include "devices/tracking_allocator.h"
#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/failing_new.h"

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

TEST_CASE("a kernel overwrites an input if it is in the same memory") {
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

TEST_CASE("an exception in a kernel's parallel loop ends the loop") {
  // Two shards, one after the other.
  class TwoShards : public Parallel {
   public:
    void run(int64_t total, double, RangeBody body) override {
      body(0, total / 2);
      body(total / 2, total);
    }
  };
  TwoShards two_shards;
  for (Parallel* parallel :
       {static_cast<Parallel*>(nullptr), static_cast<Parallel*>(&two_shards)}) {
    StepInfo step;
    step.parallel = parallel;
    const Tag tag;
    const KernelContext context(nullptr, {}, {}, &step, &tag);
    int calls = 0;
    CHECK_THROWS_AS(context.parallel_for(10, 1,
                                         [&](int64_t, int64_t) {
                                           ++calls;
                                           throw 3;
                                         }),
                    int);
    CHECK(calls == 1);
  }
}

TEST_CASE("a kernel whose shards find no memory is out of memory") {
  const Tensor logits = Tensor::vector<float>({1, 2, 3});
  bool any_failed = false;
  for (int64_t k = 1;; ++k) {
    FailAllocation fail(k);
    Status status;
    try {
      status = run_op("Softmax", {logits}).status();
    } catch (const std::bad_alloc&) {  // of the fixture's own
      continue;
    }
    fail.stop();
    INFO(status.to_string());
    if (!fail.failed()) {
      CHECK(status.ok());
      break;
    }
    if (status.message() == "[Softmax] out of memory") any_failed = true;
  }
  CHECK(any_failed);
}

}  // namespace tagflow::devices
