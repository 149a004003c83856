#include <doctest/doctest.h>

#include "tests/devices/state_fixture.h"

namespace tagflow::devices {

TEST_CASE("counters refuse what is no state of Philox") {
  const Tensor state = make_variable("s", Tensor::vector<int64_t>({1, 2, 3}));
  const Tensor philox = Tensor::scalar<int64_t>(1);
  const Tensor two = Tensor::scalar<int64_t>(2);
  expect_error(run_on_state("RngSkip", {state, two, two}),
               Code::kInvalidArgument, "algorithm 2 is unknown; 1 is Philox");
  expect_error(
      run_on_state("RngSkip", {state, philox, Tensor::vector<int64_t>({1, 2})}),
      Code::kInvalidArgument, "delta must be a scalar, got int64[2]");
  const Tensor small = make_variable("small", Tensor::vector<int64_t>({1, 2}));
  expect_error(run_on_state("RngSkip", {small, philox, two}),
               Code::kInvalidArgument,
               "a vector of at least 3 words, the value of variable \"small\"");
  const Tensor floats = make_variable("f", Tensor::vector<float>({1, 2, 3}));
  expect_error(run_on_state("RngSkip", {floats, philox, two}),
               Code::kInvalidArgument, "is used as one of int64");
}

}  // namespace tagflow::devices
