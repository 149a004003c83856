// Shape inference of stacks, tensor arrays, lists and optionals, and its
// errors.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

namespace {

const AttrMap kFloats{{"dtype", DataType::kFloat}};
const AttrMap kFloatElements{{"element_dtype", DataType::kFloat}};

InferInput handle() { return {PartialShape::scalar(), DataType::kResource}; }
InferInput list() { return {PartialShape::scalar(), DataType::kVariant}; }
InferInput flow() { return PartialShape::scalar(); }
InferInput index() { return unknown_ints({}); }

}  // namespace

TEST_CASE("shapes of StackPush are those of the value") {
  const AttrMap floats{{"elem_type", DataType::kFloat}};
  CHECK(infer("StackV2", {index()}, floats) == "[]");
  CHECK(infer("StackPushV2", {handle(), {2, kAny}}) == "[2,?]");
  CHECK(infer("StackPopV2", {handle()}, floats) == "<unknown>");
  CHECK(infer("Stack", {}, floats) == "[2]");
  expect_refused(infer("StackV2", {unknown_ints({1})}, floats),
                 "has shape [1], of rank 1; rank 0 is wanted");
}

TEST_CASE("shapes of a tensor array's elements come from its attributes") {
  CHECK(infer("TensorArrayV3", {index()}, kFloats) == "[][]");
  CHECK(infer("TensorArrayReadV3", {handle(), index(), flow()}, kFloats) ==
        "<unknown>");
  CHECK(infer("TensorArrayWriteV3", {handle(), index(), {2}, flow()}) == "[]");
  const auto gather = [](PartialShape indices, PartialShape element) {
    return infer(
        "TensorArrayGatherV3",
        {handle(), unknown_ints(std::move(indices)), flow()},
        {{"dtype", DataType::kFloat}, {"element_shape", std::move(element)}});
  };
  CHECK(gather({3}, {2, kAny}) == "[3,2,?]");
  CHECK(gather(kUnknownShape, {2}) == "[?,2]");
  CHECK(gather({3}, kUnknownShape) == "<unknown>");
  const auto concat = [](PartialShape rest) {
    return infer("TensorArrayConcatV3", {handle(), flow()},
                 {{"dtype", DataType::kFloat},
                  {"element_shape_except0", std::move(rest)}});
  };
  CHECK(concat({2}) == "[?,2][?]");
  CHECK(concat(kUnknownShape) == "<unknown>[?]");
  CHECK(infer("TensorArrayGradWithShape", {handle(), flow(), ints({2})},
              {{"source", "g"}}) == "[][]");
}

TEST_CASE("shapes that no tensor array can take are refused") {
  expect_refused(infer("TensorArrayV3", {unknown_ints({2})}, kFloats),
                 "rank 0 is wanted");
  expect_refused(
      infer("TensorArrayWriteV3", {handle(), ints({1}), {2}, flow()}),
      "rank 0 is wanted");
  const auto scatter = [](PartialShape indices, PartialShape value) {
    return infer(
        "TensorArrayScatterV3",
        {handle(), unknown_ints(std::move(indices)), std::move(value), flow()});
  };
  CHECK(scatter({2}, {2, 3}) == "[]");
  CHECK(scatter({kAny}, kUnknownShape) == "[]");
  expect_refused(scatter({2}, {3}), "2 indices for a value of shape [3]");
  expect_refused(scatter({2}, PartialShape::scalar()),
                 "at least rank 1 is wanted");
  expect_refused(scatter({2, 2}, {2}), "rank 1 is wanted");
  expect_refused(infer("TensorArraySplitV3",
                       {handle(), {2}, Tensor::scalar(int64_t{2}), flow()}),
                 "rank 1 is wanted");
}

TEST_CASE("a list's elements have the shape that an input says") {
  const InferInput shape = ints({2, -1});
  const InferInput any = Tensor::scalar(-1);
  CHECK(infer("EmptyTensorList", {shape, index()}, kFloatElements) == "[]");
  CHECK(infer("TensorListStack", {list(), shape}, kFloatElements) == "[?,2,?]");
  CHECK(infer("TensorListStack", {list(), shape},
              {{"element_dtype", DataType::kFloat}, {"num_elements", 4}}) ==
        "[4,2,?]");
  CHECK(infer("TensorListStack", {list(), any}, kFloatElements) == "<unknown>");
  CHECK(infer("TensorListGather", {list(), unknown_ints({3}), shape},
              kFloatElements) == "[3,2,?]");
  CHECK(infer("TensorListGather", {list(), unknown_ints(kUnknownShape), shape},
              kFloatElements) == "[?,2,?]");
  // What was set may have another.
  CHECK(infer("TensorListGetItem", {list(), index(), shape}, kFloatElements) ==
        "<unknown>");
  CHECK(infer("TensorListPopBack", {list(), shape}, kFloatElements) ==
        "[]<unknown>");
  const InferInput lengths{{kAny}, DataType::kInt64};
  CHECK(infer("TensorListConcatV2", {list(), shape, lengths}, kFloatElements) ==
        "[?,?][?]");
  CHECK(infer("TensorListConcatV2", {list(), any, lengths}, kFloatElements) ==
        "<unknown>[?]");
  CHECK(infer("TensorListConcat", {list()},
              {{"element_dtype", DataType::kFloat},
               {"element_shape", PartialShape{5, 6}}}) == "[?,6][?]");
  CHECK(infer("TensorListConcatLists", {list(), list()}, kFloatElements) ==
        "[]");
}

TEST_CASE("shapes that no list can take are refused") {
  expect_refused(
      infer("EmptyTensorList", {Tensor::scalar(3), index()}, kFloatElements),
      "element_shape must be a vector, or -1 for any shape, not 3");
  expect_refused(
      infer("EmptyTensorList", {unknown_ints({1, 1}), index()}, kFloatElements),
      "element_shape must be a vector or -1, not [1,1]");
  expect_refused(
      infer("EmptyTensorList", {ints({-3}), index()}, kFloatElements), "-3");
  expect_refused(infer("TensorListFromTensor", {{}, ints({})}),
                 "at least rank 1 is wanted");
  expect_refused(infer("TensorListResize", {list(), unknown_ints({1})}),
                 "rank 0 is wanted");
  expect_refused(infer("TensorListConcatLists",
                       {list(), {{2}, DataType::kVariant}}, kFloatElements),
                 "shapes of the inputs differ: [] and [2]");
  expect_refused(infer("TensorListScatterV2",
                       {{2}, unknown_ints({2}), ints({}), unknown_ints({2})}),
                 "rank 0 is wanted");
}

TEST_CASE("an optional's values have the shapes that its reader expects") {
  CHECK(infer("OptionalFromValue", {{2}, {3}}) == "[]");
  CHECK(infer("OptionalNone", {}) == "[]");
  CHECK(infer("OptionalHasValue", {list()}) == "[]");
  const std::vector<DataType> types{DataType::kFloat, DataType::kInt32};
  CHECK(infer("OptionalGetValue", {list()},
              {{"output_types", types},
               {"output_shapes", std::vector<PartialShape>{
                                     {2}, PartialShape()}}}) == "[2]<unknown>");
  expect_refused(infer("OptionalGetValue", {list()},
                       {{"output_types", types},
                        {"output_shapes", std::vector<PartialShape>{{2}}}}),
                 "1 output_shapes for 2 outputs");
  CHECK(infer("FakeParam", {},
              {{"dtype", DataType::kFloat}, {"shape", PartialShape{kAny}}}) ==
        "[?]");
  CHECK(infer("DeviceIndex", {},
              {{"device_names", std::vector<std::string>{"CPU"}}}) == "[]");
}

}  // namespace tagflow::graph
