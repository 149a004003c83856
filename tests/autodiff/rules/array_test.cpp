// Rules of array ops that reshape, join, split or reorder tensors, and of
// series.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

TEST_CASE("ops that change shapes have gradients of the shapes before") {
  check_squares(op_with("Reshape", {{3, 2}}), {values({2, 3})});
  check_squares(op_with("Reshape", {{-1}}), {values({2, 3})});
  check_squares(op_with("Reshape", {{2, 0}}), {values({0, 3})});
  check_squares(op_with("ExpandDims", {-1}), {values({2, 3})});
  check_squares(op_of("Squeeze"), {values({1, 3, 1})});
  check_squares(op_of("Squeeze", {{"squeeze_dims", std::vector<int64_t>{0}}}),
                {values({1, 3, 1})});
}

TEST_CASE("ops that repeat elements sum over the copies") {
  check_squares(op_with("BroadcastTo", {{2, 3, 4}}), {values({3, 1})});
  check_squares(op_with("BroadcastTo", {{2, 3}}), {values({})});
  check_squares(op_with("BroadcastTo", {{2, 3}}), {values({2, 3})});
  check_squares(outputs_of("Fill", 1, {{2, 3}}, {0}), {values({})});
  check_squares(op_with("Tile", {{2, 3}}), {values({2, 2})});
  check_squares(op_with("Tile", {{0, 1}}), {values({2, 2})});
  check_squares(op_with("Tile", {Tensor::of<int32_t>({0}, {})}), {values({})});
  check_squares(op_with_unknown("Tile", {Tensor::vector<int64_t>({2, 1})}),
                {values({2, 2})});
}

TEST_CASE("joins of tensors have gradients by each") {
  const auto three = {values({2, 3}), values({1, 3}), values({0, 3})};
  const auto two = {values({2, 3}), values({2, 2})};
  check_squares(op_with("ConcatV2", {0}), three);
  check_squares(op_with("ConcatV2", {-1}), two);
  check_squares(op_with("ConcatV2", {Tensor::scalar<int64_t>(1)}), two);
  check_squares(op_with_unknown("ConcatV2", {-1}), two);
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("Concat", {1, x[0], x[1]});
      },
      two);
  const auto same = {values({2, 3}), values({2, 3})};
  check_squares(op_of("Pack"), same);
  check_squares(op_of("Pack", {{"axis", -1}}), same);
  check_squares(op_of("ParallelConcat", {{"shape", PartialShape({2, 3})}}),
                {values({1, 3}), values({1, 3})});
}

TEST_CASE("splits of a tensor have gradients, if not all parts are used") {
  check_squares(outputs_of("Split", 1, {1}, {0, 2}, {{"num_split", 3}}),
                {values({2, 6})});
  check_squares(
      outputs_of("SplitV", 0, {{1, 0, -1}, -1}, {1, 2}, {{"num_split", 3}}),
      {values({2, 4})});
  check_squares(outputs_of("Unpack", 0, {}, {0, 2}, {{"num", 3}, {"axis", 1}}),
                {values({2, 3, 2})});
}

TEST_CASE("ops that reorder elements have gradients in the old order") {
  const Tensor x = values({2, 3, 4});
  check_squares(op_with("Transpose", {{2, 0, 1}}), {x});
  check_squares(op_with("Transpose", {{-1, 0, 1}}), {x});
  check_squares(op_with_unknown("Transpose", {{-1, 0, 1}}), {x});
  check_squares(op_with("ConjugateTranspose", {{1, 0}}),
                {complex_values({2, 3})});
  check_squares(op_with("ReverseV2", {{-1, 0}}), {values({2, 3})});
  check_squares(op_with("Reverse", {{false, true}}), {values({2, 3})});
  check_squares(op_with("ReverseSequence", {{2, 0, 3}},
                        {{"seq_dim", 1}, {"batch_dim", 0}}),
                {values({3, 4})});
  check_squares(op_with("Roll", {{1, -3}, {0, 1}}), {values({3, 4})});
}

TEST_CASE("series have gradients by their ends") {
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return ops::range(s, x[0], Tensor::scalar(4.5), x[1]);
      },
      {Tensor::scalar(0.5), Tensor::scalar(1.1)});
  for (const int count : {5, 1})
    check_squares(op_with("LinSpace", {count}),
                  {Tensor::scalar(0.5), Tensor::scalar(2.)});
}
