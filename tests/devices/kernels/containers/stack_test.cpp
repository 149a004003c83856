#include <doctest/doctest.h>

#include "graph/float16.h"
#include "tests/devices/one_step.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

Tensor make_stack(const OneStep& step, DataType dtype, int max_size = -1) {
  return step.value("StackV2", {Tensor::scalar(max_size)},
                    {{"elem_type", dtype}, {"stack_name", "s"}});
}

AttrMap pop_as(DataType dtype) { return {{"elem_type", dtype}}; }

}  // namespace

TEST_CASE("a stack gives back what was pushed last, of every type") {
  const std::vector<Tensor> values = {
      Tensor::scalar(1.5f),
      Tensor::scalar(true),
      Tensor::scalar(Complex64(1, 2)),
      Tensor::scalar("text"),
      Tensor::of<Half>({2, 2}, {Half(1), Half(2), Half(3), Half(4)}),
      Tensor::of<int64_t>({0}, {}),
  };
  for (const Tensor& value : values) {
    const OneStep step;
    const Tensor stack = make_stack(step, value.dtype());
    const Tensor other = step.value("Pack", {value}, {{"N", 1}});
    expect_close(step.run("StackPushV2", {stack, value}), value);
    expect_close(
        step.run("StackPushV2", {stack, other}, {{"swap_memory", true}}),
        other);
    expect_close(step.run("StackPopV2", {stack}, pop_as(value.dtype())), other);
    expect_close(step.run("StackPopV2", {stack}, pop_as(value.dtype())), value);
  }
}

TEST_CASE("a stack holds handles and variants") {
  const OneStep step;
  const Tensor inner = make_stack(step, DataType::kInt32);
  const Tensor outer = make_stack(step, DataType::kResource);
  step.value("StackPushV2", {outer, inner});
  const Tensor back =
      step.value("StackPopV2", {outer}, pop_as(DataType::kResource));
  CHECK(identical(back, inner));
  const Tensor lists = make_stack(step, DataType::kVariant);
  step.value("StackPushV2", {lists, Tensor::make(DataType::kVariant, {})});
  CHECK(step.value("StackPopV2", {lists}, pop_as(DataType::kVariant)).dtype() ==
        DataType::kVariant);
}

TEST_CASE("a stack refuses operations that it cannot do") {
  const OneStep step;
  const Tensor stack = make_stack(step, DataType::kFloat, 1);
  const AttrMap as_float = pop_as(DataType::kFloat);
  expect_error(step.run("StackPopV2", {stack}, as_float),
               Code::kInvalidArgument, "[StackPopV2] stack \"s\" is empty");
  expect_error(step.run("StackPushV2", {stack, Tensor::scalar(1)}),
               Code::kInvalidArgument,
               "cannot push int32[] onto stack \"s\" of float with 0 elements");
  step.value("StackPushV2", {stack, Tensor::scalar(1.0f)});
  expect_error(step.run("StackPushV2", {stack, Tensor::scalar(2.0f)}),
               Code::kInvalidArgument,
               "stack \"s\" is full: its max_size is 1");
  expect_error(step.run("StackPopV2", {stack}, pop_as(DataType::kInt32)),
               Code::kInvalidArgument,
               "cannot pop a int32 from stack \"s\" of float with 1 elements");
  CHECK(step.run("StackCloseV2", {stack}).ok());
  CHECK(step.run("StackCloseV2", {stack}).ok());
  expect_error(step.run("StackPushV2", {stack, Tensor::scalar(2.0f)}),
               Code::kInvalidArgument, "stack \"s\" has been closed");
  expect_error(step.run("StackPopV2", {stack}, as_float),
               Code::kInvalidArgument, "stack \"s\" has been closed");
}

TEST_CASE("a stack keeps nothing that it has refused, or of what it had") {
  const OneStep step;
  const Tensor stack = make_stack(step, DataType::kFloat, 2);
  const Tensor pushed = Tensor::make(DataType::kFloat, {32});
  const Tensor refused = Tensor::make(DataType::kFloat, {4, 8});
  // Elements may differ in shape.
  step.value("StackPushV2", {stack, Tensor::scalar(1.0f)});
  step.value("StackPushV2", {stack, pushed});
  CHECK_FALSE(step.run("StackPushV2", {stack, refused}).ok());
  CHECK(refused.unique());
  CHECK_FALSE(pushed.unique());
  CHECK(step.run("StackCloseV2", {stack}).ok());
  CHECK(pushed.unique());
}

TEST_CASE("a stack op refuses an input that is not a stack's handle") {
  const OneStep step;
  const AttrMap as_float = pop_as(DataType::kFloat);
  const Tensor empty = Tensor::make(DataType::kResource, {});
  expect_error(step.run("StackPopV2", {empty}, as_float),
               Code::kInvalidArgument,
               "[StackPopV2] input 0 must be one stack, not an empty handle");
  expect_error(step.run("StackPopV2", {Tensor::make(DataType::kResource, {2})},
                        as_float),
               Code::kInvalidArgument,
               "input 0 must be the handle of one stack, not resource[2]");
  expect_error(
      step.run("StackPopV2", {step.array(3, DataType::kFloat)}, as_float),
      Code::kInvalidArgument,
      "input 0 must be one stack, not tensor array \"op\" of float with 3 "
      "elements");
  expect_error(step.run("StackV2", {Tensor::vector<int32_t>({1})}, as_float),
               Code::kInvalidArgument,
               "max_size must be an int32 scalar, not int32[1]");
  expect_error(run_op("StackV2", {Tensor::scalar(1)}, as_float),
               Code::kInternal, "[StackV2] there is no step");
}

TEST_CASE("a name that no stack of the step has is refused") {
  graph::Graph graph;
  auto stack = graph.add("stack", "Stack", {}, pop_as(DataType::kFloat));
  REQUIRE(stack.ok());
  auto pop =
      graph.add("pop", "StackPop", {{{*stack, 0}}}, pop_as(DataType::kFloat));
  REQUIRE(pop.ok());
  const auto kernel = KernelRegistry::global().make(**pop, "CPU");
  REQUIRE(kernel.ok());
  StepResources resources;
  StepInfo step;
  step.resources = &resources;
  const Tag tag;
  const auto pop_from = [&](Tensor name) {
    std::vector<Tensor> inputs = {std::move(name)}, outputs(1);
    KernelContext context(*pop, inputs, outputs, &step, &tag);
    return (*kernel)->compute(context);
  };
  expect_error(pop_from(Tensor::vector<std::string>({"_stacks", "s"})),
               Code::kNotFound, "[StackPop] this step has no stack \"s\"");
  expect_error(pop_from(Tensor::scalar("s")), Code::kInvalidArgument,
               "a stack's handle is a vector of two strings, not string[]");
}

TEST_CASE("a stack is gone with its last handle") {
  const OneStep step;
  {
    const Tensor stack = make_stack(step, DataType::kFloat);
    CHECK(step.resources.alive() == 1);
  }
  CHECK(step.resources.alive() == 0);
}

TEST_CASE("stacks in stacks in stacks are let go of without recursion") {
  OneStep step;
  Tensor stack = make_stack(step, DataType::kResource);
  for (int i = 0; i < 2'000; ++i) {
    const Tensor outer = make_stack(step, DataType::kResource);
    step.value("StackPushV2", {outer, stack});
    stack = outer;
  }
  CHECK(step.resources.alive() == 2'001);
  stack = Tensor();
  CHECK(step.resources.alive() == 0);
}

TEST_CASE("the end of a step empties a stack that holds itself") {
  OneStep step;
  const Tensor stack = make_stack(step, DataType::kResource);
  step.value("StackPushV2", {stack, stack});
  step.resources.end();
  expect_error(step.run("StackPopV2", {stack}, pop_as(DataType::kResource)),
               Code::kInvalidArgument, "stack \"s\" has been closed");
}
