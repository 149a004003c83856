// Shape inference of reductions, scans and counts, and its errors.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("a reduction leaves the dimensions that it does not name") {
  const AttrMap keep{{"keep_dims", true}};
  CHECK(infer("Sum", {{2, 3, 4}, ints({0, -1})}) == "[3]");
  CHECK(infer("Sum", {{2, 3, 4}, ints({0, -1})}, keep) == "[1,3,1]");
  CHECK(infer("Sum", {{2, 3}, unknown_ints({kAny})}) == "<unknown>");
  CHECK(infer("Sum", {{2, 3}, unknown_ints({kAny})}, keep) == "[?,?]");
  CHECK(infer("Max", {kUnknownShape, ints({0})}, keep) == "<unknown>");
  CHECK(infer("Mean", {{2, 3}, Tensor::vector<int64_t>({1})}) == "[2]");
  CHECK(infer("Sum", {{2, 3}, Tensor::scalar(1)}) == "[2]");
  expect_refused(infer("Sum", {{2, 3}, Tensor::of<int32_t>({1, 1}, {0})}),
                 "the axes are [1,1], not a scalar or a vector");
  expect_refused(infer("Min", {kUnknownShape, unknown_ints({kAny, kAny})}),
                 "the axes are [?,?], not a scalar or a vector");
  expect_refused(infer("Prod", {{2, 3}, ints({2})}),
                 "[Prod] node \"op\": axis 2 is not a dimension of [2,3]");
}

TEST_CASE("an arg-reduction takes one dimension away") {
  CHECK(infer("ArgMax", {{2, 3, 4}, Tensor::scalar(-2)}) == "[2,4]");
  CHECK(infer("ArgMax", {{2, 3}, Tensor::scalar(int16_t(0))}) == "[3]");
  CHECK(infer("ArgMin", {{2, 3, 4}, unknown_ints({})}) == "[?,?]");
  CHECK(infer("ArgMin", {kUnknownShape, Tensor::scalar(0)}) == "<unknown>");
  expect_refused(infer("ArgMax", {{2, 3}, Tensor::scalar(2)}),
                 "[ArgMax] node \"op\": dimension 2 is not one of [2,3]");
  expect_refused(infer("ArgMax", {PartialShape::scalar(), Tensor::scalar(0)}),
                 "[ArgMax] node \"op\": a scalar has no dimension to reduce");
  expect_refused(infer("ArgMax", {{2, 3}, ints({0})}), "rank 0 is wanted");
}

TEST_CASE("a scan keeps the shape of what it goes over") {
  CHECK(infer("CumulativeLogsumexp", {{2, kAny}, Tensor::scalar(0)}) ==
        "[2,?]");
  expect_refused(
      infer("CumulativeLogsumexp", {PartialShape::scalar(), Tensor::scalar(0)}),
      "at least rank 1 is wanted");
}

TEST_CASE("shapes of Bincount are as long as the size says") {
  const InferInput weights({kAny});
  CHECK(infer("Bincount", {ints({1, 2}), Tensor::scalar(4), weights}) == "[4]");
  CHECK(infer("Bincount", {ints({1, 2}), unknown_ints({}), weights}) == "[?]");
  expect_refused(infer("Bincount", {ints({1}), Tensor::scalar(-4), weights}),
                 "[Bincount] node \"op\": size -4 is negative");
  CHECK(infer("HistogramFixedWidth", {{9}, {2}, Tensor::scalar(4)}) == "[4]");
  const auto dense = [&](PartialShape input) {
    return infer("DenseBincount",
                 {unknown_ints(std::move(input)), Tensor::scalar(4), weights});
  };
  CHECK(dense({5}) == "[4]");
  CHECK(dense({3, 5}) == "[3,4]");
  CHECK(dense({}) == "<unknown>");
  expect_refused(dense({2, 3, 5}),
                 "[DenseBincount] node \"op\": the rank of [2,3,5] is over 2");
}

}  // namespace tagflow::graph
