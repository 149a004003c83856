#include "devices/kernels/gradient/persistent_stack.h"

#include "tests/devices/one_step.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

Tensor empty_stack(DataType dtype) {
  return OneStep().value("PersistentStack", {}, {{"elem_type", dtype}});
}

Tensor pushed(const Tensor& stack, const Tensor& value) {
  return OneStep().value("PersistentStackPush", {stack, value});
}

// What is left, and the value.
std::pair<Tensor, Tensor> popped(const Tensor& stack, DataType dtype) {
  auto outputs = run_op("PersistentStackPop", {stack}, {{"elem_type", dtype}});
  INFO(outputs.status().to_string());
  REQUIRE(outputs.ok());
  return {(*outputs)[0], (*outputs)[1]};
}

int64_t size_of(const Tensor& stack) {
  return OneStep()
      .value("PersistentStackSize", {stack})
      .scalar_value<int64_t>();
}

std::vector<int32_t> elements_of(Tensor stack) {
  std::vector<int32_t> values;
  while (size_of(stack) > 0) {
    auto [rest, value] = popped(stack, DataType::kInt32);
    values.push_back(value.scalar_value<int32_t>());
    stack = rest;
  }
  return values;
}

const PersistentStack& stack_in(const Tensor& tensor) {
  return *tensor.data<Variant>()->get_if<PersistentStack>();
}

const AttrMap kInts{{"elem_type", DataType::kInt32}};

Tensor no_gradients() { return OneStep().value("ZeroVariant", {}); }

Tensor zero_pushed(const Tensor& stack) {
  return OneStep().value("PersistentStackPushZero", {stack}, kInts);
}

Result<Outputs> pop_or_zero(const Tensor& stack, const Tensor& shape,
                            AttrMap type = kInts) {
  return run_op("PersistentStackPopOrZero", {stack, shape}, std::move(type));
}

// The topmost so many elements, scalars.
std::vector<int32_t> gradients_of(Tensor stack, int count) {
  std::vector<int32_t> values;
  for (int i = 0; i < count; ++i) {
    auto outputs = pop_or_zero(stack, Tensor::vector<int32_t>({}));
    INFO(outputs.status().to_string());
    REQUIRE(outputs.ok());
    stack = (*outputs)[0];
    values.push_back((*outputs)[1].scalar_value<int32_t>());
  }
  return values;
}

Tensor stack_of(std::initializer_list<int32_t> values) {
  Tensor stack = no_gradients();
  for (const int32_t value : values)
    stack =
        value == 0 ? zero_pushed(stack) : pushed(stack, Tensor::scalar(value));
  return stack;
}

Tensor total(const std::vector<Tensor>& stacks) {
  return OneStep().value("AddN", stacks, {{"N", int64_t(stacks.size())}});
}

}  // namespace

TEST_CASE("a push leaves the stack that it pushes onto as it was") {
  const Tensor empty = empty_stack(DataType::kInt32);
  const Tensor one = pushed(empty, Tensor::scalar(1));
  const Tensor two = pushed(one, Tensor::scalar(2));
  const Tensor other = pushed(one, Tensor::scalar(3));
  CHECK(size_of(empty) == 0);
  CHECK(elements_of(one) == std::vector<int32_t>{1});
  CHECK(elements_of(two) == std::vector<int32_t>{2, 1});
  CHECK(elements_of(other) == std::vector<int32_t>{3, 1});
  CHECK(elements_of(pushed(popped(two, DataType::kInt32).first,
                           Tensor::scalar(4))) == std::vector<int32_t>{4, 1});
  CHECK(stack_in(two).describe() == "PersistentStack[2] of int32");
}

TEST_CASE("persistent stacks agree with a list of lists") {
  // Many versions over a few chunks, each pushed onto and popped from.
  std::vector<Tensor> stacks = {empty_stack(DataType::kInt32)};
  std::vector<std::vector<int32_t>> expected = {{}};
  uint64_t random = 7;
  for (int32_t i = 0; i < 400; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const size_t at = (random >> 33) % stacks.size();
    if ((random >> 60) < 11 || expected[at].empty()) {
      stacks.push_back(pushed(stacks[at], Tensor::scalar(i)));
      expected.push_back(expected[at]);
      expected.back().insert(expected.back().begin(), i);
    } else {
      auto [rest, value] = popped(stacks[at], DataType::kInt32);
      CHECK(value.scalar_value<int32_t>() == expected[at].front());
      stacks.push_back(rest);
      expected.push_back(expected[at]);
      expected.back().erase(expected.back().begin());
    }
  }
  for (size_t i = 0; i < stacks.size(); ++i)
    CHECK(elements_of(stacks[i]) == expected[i]);
}

TEST_CASE("a stack that nobody else holds is changed in place") {
  std::vector<Tensor> inputs = {empty_stack(DataType::kInt32),
                                Tensor::scalar(1)};
  const VariantValue* value = inputs[0].data<Variant>()->get();
  auto outputs = run_unshared("PersistentStackPush", inputs);
  REQUIRE(outputs.ok());
  CHECK((*outputs)[0].data<Variant>()->get() == value);
  inputs = {std::move((*outputs)[0])};
  outputs = run_unshared("PersistentStackPop", inputs,
                         {{"elem_type", DataType::kInt32}});
  REQUIRE(outputs.ok());
  CHECK((*outputs)[0].data<Variant>()->get() == value);
}

TEST_CASE("a persistent stack that is popped in place frees the values") {
  const Tensor big = Tensor::make(DataType::kFloat, {100});
  PersistentStack stack(DataType::kFloat);
  for (int i = 0; i < 20; ++i) stack.push(big);
  CHECK(big.buffer()->refs.load() == 21);
  {
    const PersistentStack copy = stack;
    for (int i = 0; i < 8; ++i) stack.pop();
    CHECK(big.buffer()->refs.load() == 21);
    CHECK(copy.size() == 20);
  }
  stack.pop();
  // What the copy alone had held, in the chunk that is left, goes too.
  CHECK(big.buffer()->refs.load() == 12);
  while (stack.size() > 0) stack.pop();
  CHECK(big.unique());
}

TEST_CASE("a stack of a million values is let go of without recursion") {
  PersistentStack stack(DataType::kInt32);
  for (int32_t i = 0; i < 1'000'000; ++i) stack.push(Tensor::scalar(i));
  CHECK(stack.size() == 1'000'000);
  {
    PersistentStack copy = stack;
    CHECK(copy.pop().scalar_value<int32_t>() == 999'999);
  }
  CHECK(stack.pop().scalar_value<int32_t>() == 999'999);
}

TEST_CASE("stacks nested a million deep are let go of without recursion") {
  Tensor nested = Tensor::make(DataType::kVariant, {});
  for (int i = 0; i < 1'000'000; ++i) {
    auto stack = make_ref_counted<PersistentStack>(DataType::kVariant);
    stack->push(nested);
    Tensor next = Tensor::make(DataType::kVariant, {});
    *next.mutable_data<Variant>() = Variant(std::move(stack));
    nested = std::move(next);
  }
  CHECK(nested.unique());
}

TEST_CASE("a stack of gradients gives zeros beyond its end") {
  using Values = std::vector<int32_t>;
  const Tensor stack = stack_of({5, 0, 0, 6, 0});
  CHECK(gradients_of(stack, 7) == Values{0, 6, 0, 0, 5, 0, 0});
  CHECK(gradients_of(no_gradients(), 2) == Values{0, 0});
  // Zeros below all else take no place.
  CHECK(stack_of({0, 0}).data<Variant>()->get() == nullptr);
  CHECK(size_of(zero_pushed(empty_stack(DataType::kInt32))) == 0);
  CHECK(stack_in(stack_of({0, 3, 0})).describe() ==
        "PersistentStack[2] of int32");
  const auto drop = [](const Tensor& from) {
    return OneStep().value("PersistentStackDrop", {from}, kInts);
  };
  CHECK(gradients_of(drop(drop(stack)), 3) == Values{0, 0, 5});
  CHECK(drop(no_gradients()).data<Variant>()->get() == nullptr);
  CHECK(size_of(drop(empty_stack(DataType::kInt32))) == 0);
  // Zeros are of the shape that is asked for, of variants an empty one.
  auto outputs = pop_or_zero(stack, Tensor::vector<int64_t>({2, 1}));
  REQUIRE(outputs.ok());
  expect_close((*outputs)[1], Tensor::of<int32_t>({2, 1}, {0, 0}));
  outputs = pop_or_zero(no_gradients(), Tensor::vector<int32_t>({-7}),
                        {{"elem_type", DataType::kVariant}});
  REQUIRE(outputs.ok());
  CHECK((*outputs)[1].describe() == "variant[]");
  CHECK((*outputs)[1].data<Variant>()->get() == nullptr);
}

TEST_CASE("stacks of gradients are added from the top") {
  using Values = std::vector<int32_t>;
  const Tensor longer = stack_of({1, 2, 0, 4, 0});
  const Tensor shorter = stack_of({10, 20, 0});
  for (const Tensor& sum : {total({longer, shorter}), total({shorter, longer}),
                            total({no_gradients(), longer, shorter})})
    CHECK(gradients_of(sum, 6) == Values{0, 24, 10, 2, 1, 0});
  CHECK(gradients_of(longer, 6) == Values{0, 4, 0, 2, 1, 0});
  CHECK(gradients_of(total({longer, longer}), 5) == Values{0, 8, 0, 4, 2});
  CHECK(total({no_gradients()}).data<Variant>()->get() == nullptr);
  CHECK(OneStep().value("ZerosLike", {longer}).data<Variant>()->get() ==
        nullptr);
  // Stacks of stacks, level by level.
  const Tensor nested = pushed(pushed(no_gradients(), longer), shorter);
  const Tensor sum = total({nested, pushed(no_gradients(), longer)});
  auto [rest, top] = popped(sum, DataType::kVariant);
  CHECK(gradients_of(top, 5) == Values{0, 24, 10, 2, 1});
  CHECK(gradients_of(popped(rest, DataType::kVariant).second, 5) ==
        Values{0, 4, 0, 2, 1});
}

TEST_CASE("a sum with a longer stack shares what is below the shorter one") {
  PersistentStack stack(DataType::kInt32);
  for (int32_t i = 0; i < 100'000; ++i) stack.push(Tensor::scalar(i));
  Tensor longer = Tensor::make(DataType::kVariant, {});
  *longer.mutable_data<Variant>() =
      Variant(make_ref_counted<PersistentStack>(stack));
  Tensor sum = longer;
  for (int i = 0; i < 1000; ++i) sum = total({sum, stack_of({1, 1})});
  CHECK(gradients_of(sum, 3) == std::vector<int32_t>{100'999, 100'998, 99'997});
  CHECK(gradients_of(longer, 1) == std::vector<int32_t>{99'999});
}

TEST_CASE("a stack of gradients refuses operations that it cannot do") {
  const Tensor stack = stack_of({1, 0});
  const Tensor floats = pushed(no_gradients(), Tensor::scalar(1.0f));
  const Tensor scalar = Tensor::vector<int32_t>({});
  expect_error(run_op("PersistentStackPop", {stack}, kInts),
               Code::kInvalidArgument,
               "the top of PersistentStack[1] of int32 is a zero of unknown "
               "shape");
  expect_error(run_op("PersistentStackPop", {no_gradients()}, kInts),
               Code::kInvalidArgument,
               "input 0 must be one persistent stack, not an empty variant");
  for (const char* op : {"PersistentStackPushZero", "PersistentStackDrop"})
    expect_error(run_op(op, {floats}, kInts), Code::kInvalidArgument,
                 "elements of int32 are wanted, not of PersistentStack[1] of "
                 "float");
  expect_error(pop_or_zero(floats, scalar), Code::kInvalidArgument,
               "elements of int32 are wanted, not of PersistentStack[1]");
  expect_error(pop_or_zero(stack_of({1}), Tensor::vector<int32_t>({2})),
               Code::kInvalidArgument,
               "the element is int32[], not int32 of shape");
  expect_error(pop_or_zero(stack, Tensor::vector<int32_t>({-1})),
               Code::kInvalidArgument, "the shape must be known, not [?]");
  const AttrMap two{{"N", int64_t{2}}};
  expect_error(run_op("AddN", {stack, floats}, two), Code::kInvalidArgument,
               "cannot add PersistentStack[2] of int32 and PersistentStack[1] "
               "of float");
  const Tensor pair = pushed(no_gradients(), Tensor::vector<int32_t>({1, 2}));
  expect_error(run_op("AddN", {stack_of({1}), pair}, two),
               Code::kInvalidArgument, "cannot add int32[] and int32[2]");
  const Tensor list = OneStep().value("EmptyTensorList",
                                      {Tensor::scalar(-1), Tensor::scalar(-1)},
                                      {{"element_dtype", DataType::kInt32}});
  expect_error(
      pop_or_zero(list, scalar), Code::kInvalidArgument,
      "input 0 must be one persistent stack, not TensorList[0] of int32");
}

TEST_CASE("a pop refuses an element of another shape than it expects") {
  const auto pop = [](const Tensor& element, const PartialShape& shape) {
    return run_op("PersistentStackPop",
                  {pushed(pushed(empty_stack(DataType::kInt32),
                                 Tensor::vector<int32_t>({7, 8, 9})),
                          element)},
                  {{"elem_type", DataType::kInt32}, {"elem_shape", shape}});
  };
  constexpr int64_t kAny = PartialShape::kUnknown;
  const Tensor pair = Tensor::of<int32_t>({1, 2}, {3, 4});
  for (const PartialShape& shape :
       {PartialShape(), PartialShape{kAny, kAny}, PartialShape{1, kAny},
        PartialShape{1, 2}}) {
    const auto outputs = pop(pair, shape);
    REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
    CHECK(identical((*outputs)[1], pair));
    CHECK(size_of((*outputs)[0]) == 1);
  }
  CHECK(pop(Tensor::scalar(1), PartialShape::scalar()).ok());
  const auto refused = [&](const Tensor& element, const PartialShape& shape,
                           std::string_view text) {
    expect_error(pop(element, shape), Code::kInvalidArgument, text);
  };
  refused(pair, {2, kAny},
          "[PersistentStackPop] the top of PersistentStack[1] of int32 is "
          "int32[1,2], of another shape than [2,?]");
  refused(pair, {kAny}, "is int32[1,2], of another shape than [?]");
  refused(pair, PartialShape::scalar(), "int32[1,2], of another shape than []");
  refused(Tensor::scalar(1), {1}, "is int32[], of another shape than [1]");
  // If the element is the second, the first one does not matter.
  const auto first = pop(pair, PartialShape{1, 2});
  REQUIRE(first.ok());
  CHECK(
      run_op("PersistentStackPop", {(*first)[0]},
             {{"elem_type", DataType::kInt32}, {"elem_shape", PartialShape{3}}})
          .ok());
}

TEST_CASE("a persistent stack refuses operations that it cannot do") {
  const Tensor empty = empty_stack(DataType::kFloat);
  const AttrMap as_float{{"elem_type", DataType::kFloat}};
  expect_error(run_op("PersistentStackPop", {empty}, as_float),
               Code::kInvalidArgument,
               "[PersistentStackPop] PersistentStack[0] of float is empty");
  expect_error(run_op("PersistentStackPush", {empty, Tensor::scalar(1)}),
               Code::kInvalidArgument,
               "cannot push int32[] onto PersistentStack[0] of float");
  expect_error(
      run_op("PersistentStackPop", {pushed(empty, Tensor::scalar(1.0f))},
             {{"elem_type", DataType::kInt32}}),
      Code::kInvalidArgument,
      "cannot pop a int32 from PersistentStack[1] of float");
  expect_error(
      run_op("PersistentStackSize", {Tensor::make(DataType::kVariant, {})}),
      Code::kInvalidArgument,
      "input 0 must be one persistent stack, not an empty variant");
  expect_error(
      run_op("PersistentStackSize", {Tensor::make(DataType::kVariant, {1})}),
      Code::kInvalidArgument,
      "input 0 must be one persistent stack, a variant scalar, not variant[1]");
  const Tensor list = OneStep().value("EmptyTensorList",
                                      {Tensor::scalar(-1), Tensor::scalar(-1)},
                                      {{"element_dtype", DataType::kFloat}});
  expect_error(
      run_op("PersistentStackSize", {list}), Code::kInvalidArgument,
      "input 0 must be one persistent stack, not TensorList[0] of float");
}
