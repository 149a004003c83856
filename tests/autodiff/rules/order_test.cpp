// Rules of ops that find the largest, or different, elements.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

TEST_CASE("TopK and NthElement have gradients") {
  for (const bool sorted : {true, false})
    check_squares(op_with("TopKV2", {2}, {{"sorted", sorted}}),
                  {values({3, 5})});
  check_squares(op_of("TopK", {{"k", 3}}), {values({4})});
  check_squares(op_with("TopKV2", {2}, {{"index_type", DataType::kInt16}}),
                {values({2, 2, 3})});
  for (const bool reverse : {true, false})
    check_squares(op_with("NthElement", {1}, {{"reverse", reverse}}),
                  {values({3, 5})});
  const Tensor shares = gradients_of(
      op_with("NthElement", {1}), {Tensor::vector<double>({3, 2, 3, 2, 2})})[0];
  CHECK(shares.data<double>()[0] == 0);
  CHECK(shares.data<double>()[1] == doctest::Approx(1. / 3));
}

TEST_CASE("Unique and ListDiff have gradients") {
  check_squares(op_of("Unique"), {values({5})});
  check_squares(op_of("UniqueWithCounts"), {values({5})});
  check_squares(op_with("UniqueV2", {{1}}), {values({2, 4})});
  check_squares(op_with("UniqueWithCountsV2", {Tensor::of<int32_t>({0}, {})}),
                {values({4})});
  check_squares(op_with("ListDiff", {{0.5, 0.25}}), {values({5})});
}

TEST_CASE("Unique gives the gradient to all equal values") {
  const Tensor shares = gradients_of(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return ops::mul(s, Output(s.op("Unique", {x[0]})), {4., 7.});
      },
      {Tensor::vector<double>({3, 2, 3})})[0];
  CHECK(identical(shares, Tensor::vector<double>({2, 7, 2})));
}
