// Shape inference of normalisations, and its errors.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("a batch normalisation is told its channels from any input") {
  const auto norm = [](PartialShape x, PartialShape scale, PartialShape offset,
                       const char* format = "NHWC") {
    return infer(
        "FusedBatchNormV3",
        {std::move(x), std::move(scale), std::move(offset), {kAny}, {kAny}},
        {{"data_format", format}});
  };
  CHECK(norm({2, 8, 8, kAny}, {3}, {kAny}) == "[2,8,8,?][3][3][3][3]<unknown>");
  CHECK(norm({2, 3, 8, 8}, {kAny}, {kAny}, "NCHW") ==
        "[2,3,8,8][3][3][3][3]<unknown>");
  CHECK(norm(PartialShape(), {kAny}, {4}) == "<unknown>[4][4][4][4]<unknown>");
  expect_refused(norm({2, 8, 8, 3}, {4}, {3}),
                 "[FusedBatchNormV3] node \"op\": input 1 is [4] for [3] "
                 "channels");
  expect_refused(norm({2, 8, 3}, {3}, {3}),
                 "x is [2,8,3], not of the 4 dimensions of NHWC");
}

TEST_CASE("the gradient of a batch normalisation is of its input's shape") {
  const auto grad = [](PartialShape y, PartialShape x) {
    return infer("FusedBatchNormGrad",
                 {std::move(y), std::move(x), {3}, {3}, {3}});
  };
  CHECK(grad({2, 8, kAny, 3}, {2, 8, 7, kAny}) == "[2,8,7,3][3][3][0][0]");
  expect_refused(grad({2, 8, 8, 3}, {2, 9, 8, 3}),
                 "[FusedBatchNormGrad] node \"op\": y_backprop is [2,8,8,3], "
                 "x is [2,9,8,3]");
}

TEST_CASE("a local response normalisation has one shape all over") {
  CHECK(infer("LRN", {{2, kAny, 8, 3}}) == "[2,?,8,3]");
  CHECK(infer("LRNGrad", {{2, kAny, 8, 3}, {2, 5, 8, 3}, {2, 5, kAny, 3}}) ==
        "[2,5,8,3]");
  expect_refused(infer("LRNGrad", {{2, 5, 8, 3}, {2, 6, 8, 3}, {2, 5, 8, 3}}),
                 "[LRNGrad] node \"op\": input 1 is [2,6,8,3], not [2,5,8,3]");
}

}  // namespace tagflow::graph
