#include "devices/cpu/persistent_stack.h"

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

TEST_CASE("popping in place lets go of the values") {
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

TEST_CASE("what cannot be done with a persistent stack is refused") {
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
      "input 0 is no persistent stack but an empty variant");
  expect_error(
      run_op("PersistentStackSize", {Tensor::make(DataType::kVariant, {1})}),
      Code::kInvalidArgument,
      "input 0 must be one persistent stack, a variant scalar, not variant[1]");
  const Tensor list = OneStep().value("EmptyTensorList",
                                      {Tensor::scalar(-1), Tensor::scalar(-1)},
                                      {{"element_dtype", DataType::kFloat}});
  expect_error(run_op("PersistentStackSize", {list}), Code::kInvalidArgument,
               "input 0 is no persistent stack but TensorList[0] of float");
}
