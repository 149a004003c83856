// Shape inference of the gradients of element-wise functions and of containers.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

namespace {

const AttrMap kFloats{{"T", DataType::kFloat}};
const AttrMap kVariants{{"T", DataType::kVariant}};

InferInput gradients() { return {PartialShape::scalar(), DataType::kVariant}; }
InferInput gradient_index() { return unknown_ints(PartialShape::scalar()); }
InferInput lengths() { return {{kAny}, DataType::kInt64}; }

}  // namespace

TEST_CASE("the gradient of a function of one tensor has as many elements") {
  CHECK(infer("TanhGrad", {{2, kAny}, {6}}) == "[2,?]");
  CHECK(infer("TanhGrad", {{2, 3}, {6}}) == "[2,3]");
  expect_refused(
      infer("TanhGrad", {{2, 3}, {5}}),
      "inputs 0 and 1 differ in their numbers of elements: [2,3], [5]");
}

TEST_CASE("a gradient has the shape that an input says") {
  const InferInput shape = ints({2, 3});
  CHECK(infer("ZeroVariant", {}) == "[]");
  CHECK(infer("GradientListAdd", {gradients(), gradient_index(), {2}}) == "[]");
  CHECK(infer("GradientListPut", {gradients(), gradient_index(), {2}}) == "[]");
  const auto get = [&](InferInput of, AttrMap attrs = kFloats) {
    return infer("GradientListGet", {gradients(), gradient_index(), of},
                 std::move(attrs));
  };
  CHECK(get(shape) == "[2,3]");
  CHECK(get(Tensor::vector<int64_t>({2})) == "[2]");
  CHECK(get(unknown_ints({2})) == "[?,?]");
  CHECK(get(unknown_ints(kUnknownShape)) == "<unknown>");
  CHECK(get(shape, kVariants) == "[]");
  CHECK(infer("GradientListTake", {gradients(), gradient_index(), shape},
              kFloats) == "[][2,3]");
  CHECK(infer("GradientListDrop",
              {gradients(), gradient_index(), gradient_index()}) == "[]");
  CHECK(infer("GradientListAddRows",
              {gradients(), unknown_ints({kAny}), {2, 3}}) == "[]");
  CHECK(infer("GradientListGetRows", {gradients(), unknown_ints({4}), shape},
              kFloats) == "[4,2,3]");
  CHECK(infer("GradientListTakeRows",
              {gradients(), unknown_ints({kAny}), shape},
              kVariants) == "[][?]");
  CHECK(infer("GradientListAddSplit", {gradients(), {5, 2}, lengths()}) ==
        "[]");
  CHECK(infer("GradientListGetConcat", {gradients(), lengths(), shape},
              kFloats) == "[?,2,3]");
  CHECK(infer("GradientListGetConcat", {gradients(), lengths(), shape},
              kVariants) == "[?]");
}

TEST_CASE("gradients of some lists are as many as the lists") {
  const InferInput shape = ints({2, 3});
  CHECK(infer("GradientListTakeBatch", {gradients(), unknown_ints({4}), shape},
              kFloats) == "[4][4,2,3]");
  CHECK(infer("GradientListPutBatch",
              {gradients(), unknown_ints({kAny}), {2, 3}}) == "[?]");
  CHECK(infer("GradientListSplit", {gradients(), unknown_ints({4})}) ==
        "[4][4]");
  CHECK(infer("GradientListJoin",
              {gradients(), gradients(), unknown_ints({4})}) == "[4]");
  CHECK(infer("TensorListLengths", {gradients()}) == "[]");
}

TEST_CASE("shapes of PersistentStackPop are the declared element shape") {
  const AttrMap floats{{"elem_type", DataType::kFloat}};
  CHECK(infer("PersistentStack", {}, floats) == "[]");
  CHECK(infer("PersistentStackPush", {gradients(), {2}}) == "[]");
  CHECK(infer("PersistentStackPop", {gradients()}, floats) == "[]<unknown>");
  const auto popped = [](PartialShape element) {
    return infer(
        "PersistentStackPop", {gradients()},
        {{"elem_type", DataType::kFloat}, {"elem_shape", std::move(element)}});
  };
  CHECK(popped({2, kAny}) == "[][2,?]");
  CHECK(popped({3}) == "[][3]");
  CHECK(popped(PartialShape::scalar()) == "[][]");
  CHECK(popped(kUnknownShape) == "[]<unknown>");
  CHECK(infer("PersistentStackSize", {gradients()}) == "[]");
}

TEST_CASE("shapes of PersistentStackPopOrZero are those asked for") {
  const AttrMap floats{{"elem_type", DataType::kFloat}};
  CHECK(infer("PersistentStackPushZero", {gradients()}, floats) == "[]");
  CHECK(infer("PersistentStackDrop", {gradients()}, floats) == "[]");
  CHECK(infer("PersistentStackPopOrZero", {gradients(), ints({2})}, floats) ==
        "[][2]");
  CHECK(infer("PersistentStackPopOrZero", {gradients(), unknown_ints({1})},
              floats) == "[][?]");
  CHECK(infer("PersistentStackPopOrZero", {gradients(), gradient_index()},
              {{"elem_type", DataType::kVariant}}) == "[][]");
  expect_refused(infer("PersistentStackPopOrZero",
                       {gradients(), gradient_index()}, floats),
                 "rank 1 is wanted");
}

TEST_CASE("shapes that no gradient list can take are refused") {
  const InferInput vector = unknown_ints({1});
  const InferInput many{{2}, DataType::kVariant};
  expect_refused(infer("GradientListAdd", {many, gradient_index(), {2}}),
                 "rank 0 is wanted");
  expect_refused(infer("GradientListAdd", {gradients(), vector, {2}}),
                 "rank 0 is wanted");
  expect_refused(
      infer("GradientListGet", {gradients(), vector, vector}, kFloats),
      "rank 0 is wanted");
  expect_refused(
      infer("GradientListGet",
            {gradients(), gradient_index(), gradient_index()}, kFloats),
      "rank 1 is wanted");
  expect_refused(
      infer("GradientListDrop", {gradients(), gradient_index(), vector}),
      "rank 0 is wanted");
  expect_refused(infer("GradientListAddRows",
                       {gradients(), vector, PartialShape::scalar()}),
                 "at least rank 1 is wanted");
  expect_refused(infer("GradientListAddSplit",
                       {gradients(), PartialShape::scalar(), lengths()}),
                 "at least rank 1 is wanted");
  expect_refused(
      infer("GradientListGetConcat",
            {gradients(), {PartialShape::scalar(), DataType::kInt64}, vector},
            kFloats),
      "rank 1 is wanted");
}

}  // namespace tagflow::graph
