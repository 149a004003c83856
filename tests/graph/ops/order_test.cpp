// Shape inference of ops that look for elements, and its errors.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("one-hot vectors are as long as their depth") {
  const InferInput on(Tensor::scalar(1.f)), off(Tensor::scalar(0.f));
  const auto one_hot = [&](InferInput indices, InferInput depth, int axis) {
    return infer("OneHot", {indices, depth, on, off}, {{"axis", axis}});
  };
  CHECK(one_hot(unknown_ints({2, kAny}), Tensor::scalar(5), -1) == "[2,?,5]");
  CHECK(one_hot(unknown_ints({2, 3}), unknown_ints({}), 0) == "[?,2,3]");
  CHECK(one_hot(unknown_ints({}), Tensor::scalar(5), 0) == "<unknown>");
  expect_refused(one_hot(ints({1}), Tensor::scalar(-1), -1),
                 "[OneHot] node \"op\": depth -1 is negative");
}

TEST_CASE("what is found may be any number") {
  CHECK(infer("Where", {{2, 3}}) == "[?,2]");
  CHECK(infer("Where", {kUnknownShape}) == "[?,?]");
  CHECK(infer("UniqueWithCounts", {{7}}) == "[?][7][?]");
  CHECK(infer("UniqueV2", {{7, 2}, ints({0})}) == "[?,?][?]");
  CHECK(infer("ListDiff", {{7}, {2}}) == "[?][?]");
  expect_refused(infer("ListDiff", {{7, 1}, {2}}), "rank 1 is wanted");
}

TEST_CASE("the k greatest are k of the last dimension") {
  CHECK(infer("TopKV2", {{4, 9}, Tensor::scalar(3)}) == "[4,3][4,3]");
  CHECK(infer("TopKV2", {{4, 9}, unknown_ints({})}) == "[4,?][4,?]");
  CHECK(infer("TopK", {{kAny}}, {{"k", 2}}) == "[2][2]");
  CHECK(infer("TopK", {kUnknownShape}, {{"k", 2}}) == "<unknown><unknown>");
  expect_refused(infer("TopKV2", {{4, 9}, Tensor::scalar(-1)}),
                 "[TopKV2] node \"op\": k = -1 is negative");
  expect_refused(infer("TopK", {{4, 9}}, {{"k", 10}}),
                 "[TopK] node \"op\": [4,9] has fewer than k = 10 columns");
}

TEST_CASE("counts are as many as the size says") {
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
