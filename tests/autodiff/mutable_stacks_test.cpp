// Gradients through mutable stacks: Note [Mutable stacks].
#include <doctest/doctest.h>

#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/gradient_check.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::graph;              // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT

namespace {

const AttrMap kElements{{"elem_type", DataType::kDouble}};

Output new_stack(const Scope& s) {
  return s.named("stack").op("StackV2", {-1}, kElements);
}

// A stack that is used by handle, as Stack is, or StackV2.
struct Ops {
  const char* make = "StackV2";
  const char* push = "StackPushV2";
  const char* pop = "StackPopV2";
};

// Pushes v[1] of i = 0, 1, ... n - 1; gives what `after` can wait for.
Output push_all(const Scope& s, const Output& stack, const Output& x,
                const Input& n, const Ops& ops = {}) {
  return while_loop(
      s.named("pushing"),
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output pushed = in.op(ops.push, {stack, v[1]});
        const Output next = ops::mul(in, ops::sin(in, v[1]), x);
        return {ops::add(in.with_control_dependencies({pushed}), v[0], 1),
                next};
      },
      {0, x})[0];
}

// An element, which is known to have the shape of `like`.
Output pop(const Scope& s, const Output& stack, const Output& like,
           const Ops& ops = {}) {
  return ops::reshape(s, s.op(ops.pop, {stack}, kElements),
                      ops::shape(s, like));
}

// n times: result = result / 2 + pop^2.
Output pop_some(const Scope& s, const Output& stack, const Output& after,
                const Output& first, const Input& n, const Ops& ops = {}) {
  const Output zero =
      ops::constant(s.with_control_dependencies({after}), int32_t{0});
  return while_loop(
      s.named("popping"),
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output popped =
            pop(in.with_control_dependencies({v[0]}), stack, v[1], ops);
        return {ops::add(in.with_control_dependencies({popped}), v[0], 1),
                ops::add(in, ops::mul(in, v[1], 0.5), ops::square(in, popped))};
      },
      {zero, first})[1];
}

std::string refusal(const Scope& s, const Output& y, const Output& x) {
  dense_gradients(s, {y}, {x});
  CHECK(s.status().code() == Code::kUnimplemented);
  return s.status().to_string();
}

bool contains(const std::string& text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a stack that one loop pushes and another one pops has gradients") {
  for (const int pops : {5, 3, 0})
    check_gradients(
        [=](const Scope& s, const Outputs& x) -> Outputs {
          const Output stack = new_stack(s);
          const Output done = push_all(s, stack, x[0], 5);
          return pop_some(s, stack, done, x[0], pops);
        },
        {values({2})});
}

TEST_CASE("a stack of the older kind has gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output stack = s.op("Stack", {}, kElements);
        const Output pushed = s.op("StackPush", {stack, x[0]});
        const Output popped = s.with_control_dependencies({pushed}).op(
            "StackPop", {stack}, kElements);
        return ops::sin(s, popped);
      },
      {values({2})});
}

TEST_CASE("two loops may pop what a third one has pushed") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output stack = new_stack(s);
        const Output done = push_all(s, stack, x[0], 5);
        const Output first = pop_some(s, stack, done, x[0], 2);
        return {first, pop_some(s, stack, first, first, 3)};
      },
      {values({2})});
}

TEST_CASE("a y may depend on the first of the loops that pop a stack alone") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        const Output stack = new_stack(s);
        const Output done = push_all(s, stack, x[0], 5);
        const Output first = pop_some(s, stack, done, x[0], 2);
        pop_some(s, stack, first, first, 3);
        return first;
      },
      {values({2})});
}

TEST_CASE("a stack that each iteration of a loop makes has gradients") {
  check_gradients(
      [](const Scope& s, const Outputs& x) -> Outputs {
        return while_loop(
            s,
            [](const Scope& in, const Outputs& v) {
              return ops::less(in, v[0], 3);
            },
            [&](const Scope& in, const Outputs& v) -> Outputs {
              const Output stack =
                  new_stack(in.with_control_dependencies({v[0]}));
              const Output done = push_all(in, stack, v[1], v[0]);
              return {ops::add(in, v[0], 1),
                      pop_some(in, stack, done, v[1], v[0])};
            },
            {0, x[0]})[1];
      },
      {values({2})});
}

TEST_CASE("a stack that is pushed and popped on branches has gradients") {
  const auto is_odd = [](const Scope& s, const Output& i) {
    return ops::equal(s, ops::floor_mod(s, i, 2), 1);
  };
  check_gradients(
      [&](const Scope& s, const Outputs& x) -> Outputs {
        const Output stack = new_stack(s);
        const Output done = while_loop(
            s,
            [](const Scope& in, const Outputs& v) {
              return ops::less(in, v[0], 5);
            },
            [&](const Scope& in, const Outputs& v) -> Outputs {
              const Output next = cond(
                  in, is_odd(in, v[0]),
                  [&](const Scope& b) -> Outputs {
                    return ops::mul(b, b.op("StackPushV2", {stack, v[1]}),
                                    x[0]);
                  },
                  [&](const Scope& b) -> Outputs {
                    return ops::sin(b, v[1]);
                  })[0];
              return {ops::add(in.with_control_dependencies({next}), v[0], 1),
                      next};
            },
            {0, x[0]})[0];
        return while_loop(
            s,
            [](const Scope& in, const Outputs& v) {
              return ops::greater(in, v[0], 0);
            },
            [&](const Scope& in, const Outputs& v) -> Outputs {
              const Output i = ops::sub(in, v[0], 1);
              const Output next = cond(
                  in, is_odd(in, i),
                  [&](const Scope& b) -> Outputs {
                    const Output popped = pop(b, stack, v[1]);
                    return ops::mul(b, popped, v[1]);
                  },
                  [&](const Scope& b) -> Outputs {
                    return ops::cos(b, v[1]);
                  })[0];
              return {ops::identity(in.with_control_dependencies({next}), i),
                      next};
            },
            {done, x[0]})[1];
      },
      {values({2})});
}

TEST_CASE("two branches may push, of which one is taken") {
  for (const double sign : {1.0, -1.0})
    check_gradients(
        [=](const Scope& s, const Outputs& x) -> Outputs {
          const Output stack = new_stack(s);
          const Output pushed = cond(
              s, ops::greater(s, ops::constant(s, sign), 0.0),
              [&](const Scope& b) -> Outputs {
                return b.op("StackPushV2", {stack, ops::sin(b, x[0])});
              },
              [&](const Scope& b) -> Outputs {
                return b.op("StackPushV2", {stack, ops::exp(b, x[0])});
              })[0];
          const Output popped = s.with_control_dependencies({pushed}).op(
              "StackPopV2", {stack}, kElements);
          return ops::square(s, popped);
        },
        {values({2})});
}

TEST_CASE("values of several shapes may be on one stack") {
  for (const bool is_scalar_first : {true, false})
    check_gradients(
        [=](const Scope& s, const Outputs& x) -> Outputs {
          const Output stack = new_stack(s);
          const Output a = is_scalar_first ? x[0] : x[1];
          const Output b = is_scalar_first ? x[1] : x[0];
          const Output first = s.op("StackPushV2", {stack, ops::square(s, a)});
          const Output second = s.with_control_dependencies({first}).op(
              "StackPushV2", {stack, ops::sin(s, b)});
          const Output third = s.with_control_dependencies({second}).op(
              "StackPopV2", {stack}, kElements);
          const Output fourth = s.with_control_dependencies({third}).op(
              "StackPopV2", {stack}, kElements);
          return {ops::mul(s, third, 3.0), ops::exp(s, fourth)};
        },
        {values({}), values({3})});
}

TEST_CASE("a run gives what it gave before the stacks were replaced") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 0.5);
  const Output stack = new_stack(s);
  const Output pushed = s.op("StackPushV2", {stack, ops::square(s, x)});
  const Output done = push_all(
      s, stack, ops::identity(s.with_control_dependencies({pushed}), x), 3);
  const Output sum = pop_some(s, stack, done, x, 3);
  const Output popped =
      s.with_control_dependencies({sum}).op("StackPopV2", {stack}, kElements);
  const auto before = numbers(s, {pushed, sum, popped});
  const Output gradient = dense_gradients(s, {sum, popped}, {x})[0];
  CHECK(numbers(s, {pushed, sum, popped}) == before);
  // Without the gradient, and with it.
  CHECK(numbers(s, {pushed, sum, popped, gradient})[2] == 0.25);
}

TEST_CASE("stacks whose values may come in any order are refused by name") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 2.0);
  const Output stack = new_stack(s);
  const Output a = s.named("a").op("StackPushV2", {stack, x});
  SUBCASE("two pushes that do not wait for each other") {
    const Output b = s.named("b").op("StackPushV2", {stack, ops::exp(s, x)});
    const Output popped = s.with_control_dependencies({a, b}).op(
        "StackPopV2", {stack}, kElements);
    const std::string text = refusal(s, popped, x);
    CHECK(contains(text, "[StackV2] the values on stack \"stack\""));
    CHECK(contains(text, "which of node \"a\" and node \"b\" uses it first"));
  }
  SUBCASE("a pop that waits for no push") {
    const Output popped =
        s.named("popped").op("StackPopV2", {stack}, kElements);
    CHECK(contains(refusal(s, popped, x), "node \"popped\""));
  }
  SUBCASE("a handle that may be of one stack or of another") {
    const Output other = s.named("other").op("StackV2", {-1}, kElements);
    const Output either = cond(
        s, ops::less(s, x, 3.0),
        [&](const Scope& b) -> Outputs { return ops::identity(b, stack); },
        [&](const Scope& b) -> Outputs { return ops::identity(b, other); })[0];
    const Output pushed = s.op("StackPushV2", {either, x});
    const Output popped =
        s.with_control_dependencies({pushed}).named("popped").op(
            "StackPopV2", {either}, kElements);
    CHECK(contains(refusal(s, popped, x),
                   "[StackPopV2] node \"popped\" has no gradient"));
  }
}
