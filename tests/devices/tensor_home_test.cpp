#include "devices/tensor_home.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "devices/tracking_allocator.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

Tensor in(Allocator& memory) {
  return Tensor::allocate(DataType::kFloat, {10}, memory).value();
}

}  // namespace

TEST_CASE("a tensor home has the tensors in its own memory, not the host's") {
  const auto memory = TrackingAllocator::make({"GPU:0", 0, false});
  const auto other = TrackingAllocator::make({"GPU:1", 0, false});
  const TensorHome home("test", "/device:GPU:0", *memory);
  for (const auto ask : {&TensorHome::is_elsewhere, &TensorHome::has_to_come}) {
    CHECK((home.*ask)(in(host_allocator())).value());
    CHECK((home.*ask)(Tensor::scalar(1.0f)).value());
    CHECK_FALSE((home.*ask)(in(*memory)).value());
    CHECK_FALSE((home.*ask)(Tensor()).value());
    const Tensor far = in(*other);
    const Status status = (home.*ask)(far).status();
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(status.message() ==
          "[test] float[10] is not in the memory of /device:GPU:0, but in " +
              other->describe());
  }
}

TEST_CASE("a tensor home refuses strings that would have to come to it") {
  const auto memory = TrackingAllocator::make({"GPU:0", 0, false});
  const TensorHome home("test", "/device:GPU:0", *memory);
  const Tensor text = Tensor::scalar(std::string("text"));
  CHECK_FALSE(home.is_elsewhere(text).value());
  const Status status = home.has_to_come(text).status();
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message() ==
        fmt::format("[test] {} cannot be in the memory of /device:GPU:0",
                    text.describe()));
}

TEST_CASE("an accelerator says in its own name what was cancelled") {
  const auto memory = TrackingAllocator::make({"GPU:0", 0, false});
  const TensorHome home("test", "/device:GPU:0", *memory);
  CHECK(home.step_cancelled().code() == Code::kCancelled);
  CHECK(home.step_cancelled().message() == "[test] the step was cancelled");
  CHECK(home.destroyed().code() == Code::kCancelled);
  CHECK(home.destroyed().message() == "[test] the device is being destroyed");
}

}  // namespace tagflow::devices
