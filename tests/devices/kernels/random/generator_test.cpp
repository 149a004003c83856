// Random ops that draw from a generator's variable: they draw bitwise the same
// numbers as TensorFlow, and leave the same state.
#include <doctest/doctest.h>

#include <set>

#include "tests/devices/recorded_cases.h"
#include "tests/devices/state_fixture.h"

namespace tagflow::devices {
namespace {

void check_case(const RecordedCase& recorded, bool in_shards) {
  INFO("generators.txt:", recorded.line, ": ", recorded.op,
       ", in shards: ", in_shards);
  std::vector<Tensor> inputs = recorded.inputs;
  inputs[0] = make_variable("generator", recorded.inputs[0]);
  const Result<Outputs> outputs =
      run_on_state(recorded.op, inputs, recorded.attrs, in_shards);
  if (!recorded.error.empty()) {
    CHECK(code_name(outputs.status().code()) == recorded.error);
    CHECK(identical(value_of(inputs[0]), recorded.inputs[0]));
    return;
  }
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  CHECK_MESSAGE(identical(value_of(inputs[0]), recorded.outputs[0]),
                difference(value_of(inputs[0]), recorded.outputs[0], 0));
  CHECK_MESSAGE(identical((*outputs)[0], recorded.outputs[1]),
                difference((*outputs)[0], recorded.outputs[1], 0));
}

}  // namespace

TEST_CASE("generators give the numbers of TensorFlow's, and move on as far") {
  const auto cases = read_recorded_cases("generators.txt");
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  std::set<std::string> ops;
  for (const RecordedCase& recorded : *cases) {
    ops.insert(recorded.op);
    check_case(recorded, false);
    check_case(recorded, true);
  }
  CHECK(cases->size() > 100);
  CHECK(ops.size() == 6);
}

TEST_CASE("generators say what is wrong with their state") {
  const Tensor state = make_variable("s", Tensor::vector<int64_t>({1, 2, 3}));
  const Tensor philox = Tensor::scalar<int64_t>(1);
  const Tensor shape = Tensor::vector<int64_t>({2});
  const AttrMap floats = {{"dtype", DataType::kFloat}};
  expect_error(run_on_state("StatefulUniform",
                            {state, Tensor::scalar<int64_t>(2), shape}, floats),
               Code::kUnimplemented, "ThreeFry (alg 2) is not supported");
  const Tensor small = make_variable("small", Tensor::vector<int64_t>({1, 2}));
  expect_error(run_on_state("StatefulUniform", {small, philox, shape}, floats),
               Code::kInvalidArgument,
               "a vector of at least 3 words, the value of variable \"small\"");
  const Tensor empty = make_variable("empty", DataType::kInt64, {3});
  expect_error(run_on_state("StatefulUniform", {empty, philox, shape}, floats),
               Code::kFailedPrecondition, "\"empty\"");
}

TEST_CASE("NonDeterministicInts draws all bits") {
  const AttrMap bits = {{"dtype", DataType::kUInt64}};
  const auto drawn =
      run_op("NonDeterministicInts", {Tensor::vector<int64_t>({1000})}, bits);
  REQUIRE_MESSAGE(drawn.ok(), drawn.status().to_string());
  uint64_t all = ~uint64_t{0}, any = 0;
  for (const uint64_t number : (*drawn)[0].flat<uint64_t>()) {
    all &= number;
    any |= number;
  }
  CHECK(all == 0);
  CHECK(any == ~uint64_t{0});
}

TEST_CASE("random counters refuse a state that is not Philox's") {
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
