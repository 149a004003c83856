// Inputs that must be scalars, and inputs that may be a vector of one element.
#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

// An op with everything but one of its inputs, which is to be a scalar.
struct Use {
  const char* op;
  std::vector<Tensor> inputs;  // one of them is not valid
  Tensor value;                // its place is taken by this
  int highest_rank;            // up to which one element will do
  AttrMap attrs = {};
};

std::vector<Use> uses() {
  const Tensor matrix = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor pair = Tensor::vector<float>({1, 2});
  const Tensor shape = Tensor::vector<int32_t>({1, 2});
  const Tensor here;
  const auto scalar = [](int32_t value) { return Tensor::scalar(value); };
  const Tensor zero = scalar(0), one = scalar(1), two = scalar(2);
  const Tensor zeros = Tensor::vector<int32_t>({0, 0});
  const Tensor none = Tensor::scalar(int64_t(0)), f = Tensor::scalar(0.5f);
  return {
      {"Fill", {shape, here}, f, 0},
      {"Range", {here, two, one}, zero, 0},
      {"Range", {zero, here, one}, two, 0},
      {"Range", {zero, two, here}, one, 0},
      {"Split", {here, matrix}, zero, 0, {{"num_split", 2}}},
      {"MatrixBandPart", {matrix, here, none}, none, 0},
      {"MatrixBandPart", {matrix, none, here}, none, 0},
      {"MatrixDiagV2", {pair, zero, here, two, f}, two, 0},
      {"MatrixDiagV3", {pair, zero, two, here, f}, two, 0},
      {"MatrixDiagV3", {pair, zero, two, two, here}, f, 0},
      {"ConcatV2", {matrix, matrix, here}, one, 0},
      {"Concat", {here, matrix, matrix}, one, 0},
      {"ConcatOffset", {here, shape, shape}, zero, 0},
      {"GatherV2", {matrix, zeros, here}, one, 0},
      {"ExpandDims", {matrix, here}, one, 9},
      {"OneHot", {shape, here, f, f}, two, 0},
      {"TopKV2", {matrix, here}, one, 0},
      {"Cumsum", {matrix, here}, one, 0},
      {"ArgMax", {matrix, here}, one, 0},
      {"LinSpace", {f, f, here}, two, 0},
  };
}

Result<Outputs> run(const Use& use, const Tensor& value) {
  std::vector<Tensor> inputs = use.inputs;
  for (Tensor& input : inputs)
    if (!input.valid()) input = value;
  return run_op(use.op, inputs, use.attrs);
}

}  // namespace

// As TensorFlow 2.21 takes and refuses them if shapes are known.
TEST_CASE("one element serves for a scalar up to the rank that the op takes") {
  for (const Use& use : uses()) {
    const auto expected = run(use, use.value);
    REQUIRE_MESSAGE(expected.ok(), use.op << expected.status().to_string());
    Shape shape;
    for (int rank = 1; rank <= 3; ++rank) {
      shape.add_dim(1);
      INFO(use.op, " with ", shape.to_string());
      const auto found = run(use, *use.value.reshaped(shape));
      if (rank > use.highest_rank) {
        CHECK(found.status().code() == Code::kInvalidArgument);
        continue;
      }
      REQUIRE_MESSAGE(found.ok(), found.status().to_string());
      expect_close((*found)[0], (*expected)[0]);
    }
  }
}

TEST_CASE("the axis of UniqueV2 must be a vector") {
  const Tensor x = Tensor::vector<float>({1, 2});
  expect_error(run_op("UniqueV2", {x, Tensor::scalar(0)}),
               Code::kInvalidArgument, "axis must be a vector");
}

}  // namespace tagflow::devices
