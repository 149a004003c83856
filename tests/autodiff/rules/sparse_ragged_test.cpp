// Rules of ops on ragged tensors, by their values.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;

namespace {

Tensor int64s(std::vector<int64_t> elements) {
  return Tensor::of<int64_t>({int64_t(elements.size())}, elements);
}

}  // namespace

TEST_CASE("gathered rows of ragged tensors have gradients") {
  const Tensor outer = int64s({0, 2, 3}), inner = int64s({0, 1, 3, 4});
  check_squares(
      outputs_of("RaggedGather", 1, {inner, {2, 0, 2}}, {1},
                 {{"PARAMS_RAGGED_RANK", 1}, {"OUTPUT_RAGGED_RANK", 1}}),
      {values({4, 2})});
  check_squares(
      outputs_of("RaggedGather", 2,
                 {outer, inner, Tensor::of<int32_t>({2, 1}, {1, 0})}, {3},
                 {{"PARAMS_RAGGED_RANK", 2}, {"OUTPUT_RAGGED_RANK", 3}}),
      {values({4})});
}

TEST_CASE("ragged tensors made dense have gradients") {
  using Names = std::vector<std::string>;
  const auto dense = [](graph::Input shape,
                        std::vector<graph::Input> partitions,
                        Names types) -> Function {
    return [=](const graph::Scope& s, const graph::Outputs& x) {
      graph::Inputs inputs = {shape, x[0], x[1]};
      for (const graph::Input& each : partitions) inputs.add(each);
      return s.op("RaggedTensorToTensor", inputs,
                  {{"num_row_partition_tensors", int64_t(partitions.size())},
                   {"row_partition_types", types}});
    };
  };
  const Tensor splits = int64s({0, 2, 2, 5});
  const Names by_splits = {"ROW_SPLITS"};
  check_squares(dense(-1, {splits}, by_splits), {values({5}), values({})});
  check_squares(dense({-1, -1, 2}, {splits}, by_splits),
                {values({5, 2}), values({2})});
  // Some values have no place.
  check_squares(dense({2, 1, 2}, {splits}, by_splits),
                {values({5, 2}), values({1})});
  check_squares(
      dense({4, 4}, {Tensor::scalar<int64_t>(3), int64s({0, 0, 2, 2, 2})},
            {"FIRST_DIM_SIZE", "VALUE_ROWIDS"}),
      {values({5}), values({})});
  check_squares(
      dense(-1, {int64s({0, 1, 3}), splits}, {"ROW_SPLITS", "ROW_SPLITS"}),
      {values({5}), values({})});
  check_squares(outputs_of("RaggedTensorToSparse", 1, {splits}, {1}),
                {values({5, 2})});
}

TEST_CASE("ragged ranges have gradients by their starts and steps") {
  const auto range = [](const graph::Scope& s, const graph::Outputs& x) {
    return s.op("RaggedRange",
                {x[0], Tensor::vector<double>({2.9, 0.9, 0.55}), x[1]})[1];
  };
  const Tensor starts = Tensor::vector<double>({0.1, 0.2, 0.3});
  check_squares(range, {starts, Tensor::scalar(0.5)});
  check_squares(
      range, {Tensor::scalar(0.1), Tensor::vector<double>({0.3, 0.7, 0.23})});
}

TEST_CASE("ragged tensors in variants have gradients") {
  // The rows of a batch, each weighted, as one tensor again.
  const auto through = [](bool is_batch) -> Function {
    return [=](const graph::Scope& s, const graph::Outputs& x) {
      const graph::Output rows =
          s.op("RaggedTensorToVariant", {int64s({0, 2, 2, 3}), x[0]},
               {{"RAGGED_RANK", 1}, {"batched_input", is_batch}});
      const graph::OpResult whole =
          s.op("RaggedTensorFromVariant", {rows},
               {{"input_ragged_rank", is_batch ? 0 : 1},
                {"output_ragged_rank", 1},
                {"Tvalues", DataType::kDouble}});
      return graph::Outputs{graph::ops::mul(
          s, whole[1], Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}))};
    };
  };
  const std::vector<double> weights = {1, 2, 3, 4, 5, 6};
  for (const bool is_batch : {true, false}) {
    const Tensor gradient =
        gradients_of(through(is_batch), {values({3, 2})})[0];
    CHECK(std::ranges::equal(gradient.flat<double>(), weights));
  }
}
