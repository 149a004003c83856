// Shape inference of array ops whose inputs are hardly known, and its errors.
// With constant inputs, the tests of kernels check it.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("a reshape finds the one dimension that is left") {
  CHECK(infer("Reshape", {{2, 6}, ints({4, -1})}) == "[4,3]");
  CHECK(infer("Reshape", {{kAny, 6}, ints({4, -1})}) == "[4,?]");
  CHECK(infer("Reshape", {{2, 6}, unknown_ints({3})}) == "[?,?,?]");
  CHECK(infer("Reshape", {{2, 6}, unknown_ints({kAny})}) == "<unknown>");
  CHECK(infer("Reshape", {{0, 6}, ints({-1, 0})}) == "[?,0]");
  expect_refused(infer("Reshape", {{2, 6}, ints({5, -1})}), "12 elements");
  expect_refused(infer("Reshape", {{2, 6}, ints({7})}), "12 elements");
}

TEST_CASE("shapes of ExpandDims and Squeeze gain and lose dimensions of one") {
  CHECK(infer("ExpandDims", {{2, 3}, Tensor::scalar(-1)}) == "[2,3,1]");
  CHECK(infer("ExpandDims", {{2, 3}, unknown_ints({})}) == "[?,?,?]");
  CHECK(infer("ExpandDims", {kUnknownShape, Tensor::scalar(0)}) == "<unknown>");
  CHECK(infer("Squeeze", {{1, 2, 1}}) == "[2]");
  CHECK(infer("Squeeze", {{1, kAny, 1}}) == "<unknown>");
  CHECK(infer("Squeeze", {{kAny, kAny, 1}},
              {{"squeeze_dims", std::vector<int64_t>{-1}}}) == "[?,?]");
  expect_refused(infer("ExpandDims", {{2}, Tensor::scalar(3)}), "[-2, 2)");
  expect_refused(
      infer("Squeeze", {{2}}, {{"squeeze_dims", std::vector<int64_t>{0}}}),
      "squeeze");
}

TEST_CASE("constant ranges and fills have known sizes") {
  CHECK(infer("Range", {Tensor::scalar(0), Tensor::scalar(7),
                        Tensor::scalar(2)}) == "[4]");
  CHECK(infer("Range", {Tensor::scalar(0), unknown_ints({}),
                        Tensor::scalar(2)}) == "[?]");
  // The kernel says what is wrong with this one.
  CHECK(infer("Range", {Tensor::scalar(0), Tensor::scalar(7),
                        Tensor::scalar(0)}) == "[?]");
  CHECK(infer("Fill", {ints({2, 3}), {PartialShape::scalar()}}) == "[2,3]");
  CHECK(infer("Fill", {unknown_ints({2}), {PartialShape::scalar()}}) ==
        "[?,?]");
}

TEST_CASE("shapes of ConcatV2 add up as far as they are known") {
  CHECK(infer("ConcatV2", {{2, 3}, {kAny, 3}, Tensor::scalar(1)}) == "[2,6]");
  CHECK(infer("ConcatV2", {{2, 3}, {kAny, 3}, Tensor::scalar(0)}) == "[?,3]");
  CHECK(infer("ConcatV2", {{2, 3}, kUnknownShape, Tensor::scalar(-1)}) ==
        "[2,?]");
  CHECK(infer("ConcatV2", {{2, 3}, {2, 3}, unknown_ints({})}) == "[?,?]");
  expect_refused(infer("ConcatV2", {{2, 3}, {3, 3}, Tensor::scalar(1)}),
                 "cannot join [3,3]");
  expect_refused(infer("ConcatV2", {{2, 3}, {3}, Tensor::scalar(0)}), "rank");
  CHECK(infer("Pack", {{kAny, 3}, {2, kAny}}, {{"axis", -1}}) == "[2,3,2]");
  expect_refused(infer("Pack", {{2}, {3}}), "differ");
  CHECK(infer("Unpack", {{kAny, 3}}, {{"num", 2}}) == "[3][3]");
  expect_refused(infer("Unpack", {{3}}, {{"num", 2}}), "into 2");
}

TEST_CASE("shapes of Split and SplitV divide the dimension") {
  CHECK(infer("Split", {Tensor::scalar(1), {2, 6}}, {{"num_split", 3}}) ==
        "[2,2][2,2][2,2]");
  CHECK(infer("Split", {unknown_ints({}), {2, 6}}, {{"num_split", 2}}) ==
        "[?,?][?,?]");
  expect_refused(
      infer("Split", {Tensor::scalar(0), {2, 6}}, {{"num_split", 4}}),
      "into 4");
  const AttrMap three{{"num_split", 3}};
  CHECK(infer("SplitV", {{10, 2}, ints({2, -1, 3}), Tensor::scalar(0)},
              three) == "[2,2][5,2][3,2]");
  CHECK(infer("SplitV", {{kAny, 2}, ints({2, -1, 3}), Tensor::scalar(0)},
              three) == "[2,2][?,2][3,2]");
  expect_refused(infer("SplitV", {{10, 2}, ints({2, -1, 3}), ints({0})}, three),
                 "rank 0 is wanted");
  CHECK(infer("Tile", {{2, kAny}, ints({3, 2})}) == "[6,?]");
  CHECK(infer("Tile", {kUnknownShape, unknown_ints({2})}) == "[?,?]");
}

TEST_CASE("shapes of array ops' scalar arguments are checked if known") {
  const InferInput one({1}), scalar(PartialShape::scalar());
  CHECK(infer("MatrixDiagPartV2", {{2, 2}, Tensor::scalar(0), scalar}) ==
        "[2]");
  expect_refused(infer("MatrixDiagPartV2", {{2, 2}, Tensor::scalar(0), one}),
                 "rank 0 is wanted");
  const Tensor size = Tensor::scalar(2);
  CHECK(infer("MatrixDiagV2", {{2}, Tensor::scalar(0), size, size, scalar}) ==
        "[2,2]");
  expect_refused(
      infer("MatrixDiagV2", {{2}, Tensor::scalar(0), ints({2}), size, scalar}),
      "rank 0 is wanted");
  expect_refused(infer("Fill", {Tensor::scalar(2), scalar}),
                 "rank 1 is wanted");
}

TEST_CASE("shapes of StridedSlice are known as far as can be") {
  const Tensor one = ints({1});
  auto slice = [&](PartialShape shape, InferInput begin, InferInput end,
                   int64_t masks, Tensor strides) {
    return infer("StridedSlice", {std::move(shape), begin, end, strides},
                 {{"begin_mask", masks}, {"end_mask", masks}});
  };
  CHECK(slice({9, 4}, ints({1}), ints({8}), 0, ints({3})) == "[3,4]");
  CHECK(slice({kAny, 4}, ints({1}), ints({8}), 0, one) == "[?,4]");
  CHECK(slice({9, 4}, unknown_ints({1}), unknown_ints({1}), 0, one) == "[?,4]");
  CHECK(slice({9, 4}, unknown_ints({1}), unknown_ints({1}), 1, ints({-2})) ==
        "[5,4]");
  CHECK(infer("StridedSlice",
              {{kAny, 5}, unknown_ints({2}), unknown_ints({2}), ints({1, 1})},
              {{"shrink_axis_mask", 1}, {"new_axis_mask", 2}}) == "[1,5]");
  CHECK(infer("StridedSlice",
              {{2, 3, 4, 5}, ints({0, 0, 1}), ints({1, 0, 3}), ints({1, 1, 1})},
              {{"ellipsis_mask", 2}, {"shrink_axis_mask", 1}}) == "[3,4,2]");
  expect_refused(infer("StridedSlice", {{2}, ints({2}), ints({3}), one},
                       {{"shrink_axis_mask", 1}}),
                 "slice index 2");
  CHECK(infer("Slice", {{5, kAny}, ints({2, 1}), ints({-1, 3})}) == "[3,3]");
  CHECK(infer("Slice", {{5, kAny}, unknown_ints({2}), ints({-1, 3})}) ==
        "[?,3]");
  CHECK(infer("Slice", {kUnknownShape, unknown_ints({2}), unknown_ints({2})}) ==
        "[?,?]");
  CHECK(infer("Slice", {{5, 4}, ints({5, 0}), ints({-1, -1})}) == "[0,4]");
  expect_refused(infer("Slice", {{5, 4}, ints({6, 0}), ints({-1, -1})}),
                 "begin[0] = 6 is outside");
  expect_refused(infer("Slice", {{5, 4}, ints({0, -1}), ints({-1, -1})}),
                 "begin[1] = -1 is outside");
}

TEST_CASE("gathered shapes are put together from three parts") {
  const InferInput indices = unknown_ints({5, kAny});
  CHECK(infer("GatherV2", {{2, 3, 4}, indices, Tensor::scalar(1)}) ==
        "[2,5,?,4]");
  CHECK(infer("GatherV2", {{5, 3, 4}, indices, Tensor::scalar(2)},
              {{"batch_dims", 1}}) == "[5,3,?]");
  CHECK(infer("GatherV2", {{2, 3, 4}, indices, unknown_ints({})}) ==
        "[?,?,?,?]");
  expect_refused(infer("GatherV2", {Tensor::scalar(1), Tensor::scalar(0),
                                    unknown_ints({})}),
                 "at least rank 1 is wanted");
  expect_refused(infer("GatherV2", {{2, 3}, indices, Tensor::scalar(0)},
                       {{"batch_dims", 1}}),
                 "over the axis");
  expect_refused(infer("GatherV2", {{4, 3}, indices, Tensor::scalar(1)},
                       {{"batch_dims", 1}}),
                 "differ");
  CHECK(infer("GatherNd", {{2, 3, 4}, unknown_ints({6, 2})}) == "[6,4]");
  CHECK(infer("GatherNd", {{2, 3, 4}, unknown_ints({6, kAny})}) == "<unknown>");
  expect_refused(infer("GatherNd", {{2}, unknown_ints({6, 2})}), "too deep");
  expect_refused(
      infer("ScatterNd", {unknown_ints({6, 1}), {6, 4}, ints({9, 5})}),
      "should be [6,5]");
  CHECK(infer("ScatterNd", {unknown_ints({6, 1}), {6, 5}, ints({9, 5})}) ==
        "[9,5]");
}

TEST_CASE("shapes of Transpose, Pad and SpaceToBatchND follow the layout") {
  CHECK(infer("Transpose", {{2, kAny, 4}, ints({2, 0, 1})}) == "[4,2,?]");
  CHECK(infer("Transpose", {kUnknownShape, unknown_ints({3})}) == "[?,?,?]");
  CHECK(infer("Transpose", {kUnknownShape, unknown_ints(kUnknownShape)}) ==
        "<unknown>");
  CHECK(infer("Pad", {{2, kAny}, Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4})}) ==
        "[5,?]");
  CHECK(infer("SpaceToBatchND", {{2, 4, kAny, 3},
                                 ints({2, 2}),
                                 Tensor::of<int32_t>({2, 2}, {0, 0, 1, 1})}) ==
        "[8,2,?,3]");
  CHECK(infer("BatchToSpaceND", {{8, 2, 3, 1},
                                 ints({2, 2}),
                                 Tensor::of<int32_t>({2, 2}, {0, 1, 1, 1})}) ==
        "[2,3,4,1]");
  CHECK(infer("SpaceToDepth", {{1, 4, kAny, 3}}, {{"block_size", 2}}) ==
        "[1,2,?,12]");
  CHECK(infer("DepthToSpace", {{1, 4, kAny, 12}}, {{"block_size", 2}}) ==
        "[1,8,?,3]");
}

TEST_CASE("a diagonal is as long as its matrix allows") {
  CHECK(infer("MatrixDiag", {{2, kAny}}) == "[2,?,?]");
  CHECK(infer("MatrixDiagPart", {{2, 5, 3}}) == "[2,3]");
  CHECK(infer("MatrixDiagPartV3",
              {{2, 5, 3}, ints({-1, 1}), {PartialShape::scalar()}}) ==
        "[2,3,3]");
  CHECK(infer("Diag", {{2, kAny}}) == "[2,?,2,?]");
  CHECK(infer("DiagPart", {{2, kAny, kAny, 3}}) == "[2,3]");
}

TEST_CASE("one-hot vectors are as long as their depth") {
  const InferInput on(Tensor::scalar(1.f)), off(Tensor::scalar(0.f));
  const auto one_hot = [&](InferInput indices, InferInput depth, int axis) {
    return infer("OneHot", {indices, depth, on, off}, {{"axis", axis}});
  };
  CHECK(one_hot(unknown_ints({2, kAny}), Tensor::scalar(5), -1) == "[2,?,5]");
  CHECK(one_hot(unknown_ints({2, 3}), unknown_ints({}), 0) == "[?,2,3]");
  CHECK(one_hot(unknown_ints({4}), Tensor::scalar(3), 0) == "[3,4]");
  CHECK(one_hot(unknown_ints({}), Tensor::scalar(5), 0) == "<unknown>");
  expect_refused(one_hot(ints({1}), Tensor::scalar(-1), -1),
                 "[OneHot] node \"op\": depth -1 is negative");
}

TEST_CASE("shapes of Where have an unknown number of rows") {
  CHECK(infer("Where", {{2, 3}}) == "[?,2]");
  CHECK(infer("Where", {kUnknownShape}) == "[?,?]");
}

}  // namespace tagflow::graph
