// Shape inference of ops that order or find elements, and its errors.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("shapes of Unique and ListDiff have an unknown length") {
  CHECK(infer("Unique", {{7}}) == "[?][7]");
  CHECK(infer("UniqueWithCounts", {{7}}) == "[?][7][?]");
  CHECK(infer("UniqueV2", {{7, 2}, ints({0})}) == "[?,?][?]");
  CHECK(infer("ListDiff", {{7}, {2}}) == "[?][?]");
  expect_refused(infer("ListDiff", {{7, 1}, {2}}), "rank 1 is wanted");
}

TEST_CASE("shapes of TopK have k in the last dimension") {
  CHECK(infer("TopKV2", {{4, 9}, Tensor::scalar(3)}) == "[4,3][4,3]");
  CHECK(infer("TopKV2", {{4, 9}, unknown_ints({})}) == "[4,?][4,?]");
  CHECK(infer("TopK", {{kAny}}, {{"k", 2}}) == "[2][2]");
  CHECK(infer("TopK", {kUnknownShape}, {{"k", 2}}) == "<unknown><unknown>");
  expect_refused(infer("TopKV2", {{4, 9}, Tensor::scalar(-1)}),
                 "[TopKV2] node \"op\": k = -1 is negative");
  expect_refused(infer("TopK", {{4, 9}}, {{"k", 10}}),
                 "[TopK] node \"op\": [4,9] has fewer than k = 10 columns");
}

}  // namespace tagflow::graph
