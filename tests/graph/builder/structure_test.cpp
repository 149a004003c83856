// The nodes that cond() and while_loop() emit. The expected graphs agree with
// those of TensorFlow's v1 control flow, except for the names of ordinary ops.
#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/builder/builder.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/graph/builder/dump.h"

namespace tagflow::graph {

using namespace ops;

namespace {

Output scalar(const Scope& s, const char* name,
              DataType dtype = DataType::kFloat) {
  return placeholder(s.named(name), dtype, PartialShape::scalar());
}

// Repeats `body` on one variable while it is less than `limit`.
Output repeat(const Scope& s, const Input& start, const Input& limit,
              const std::function<Output(const Scope&, Output)>& body,
              const WhileOptions& options = {}) {
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return less(in, v[0], limit); },
      [&](const Scope& in, const Outputs& v) { return body(in, v[0]); },
      {start}, options)[0];
}

Output add_one(const Scope& s, Output x) { return add(s, x, 1); }

void check_valid(const Scope& s) {
  CHECK_MESSAGE(s.ok(), s.status().to_string());
  const Status status = validate(s.graph());
  CHECK_MESSAGE(status.ok(), status.to_string());
}

}  // namespace

TEST_CASE("a loop has Enter, Merge, Switch, Identity, NextIteration and Exit") {
  Graph graph;
  Scope s(graph);
  const Output x = scalar(s, "x");
  const Output n = scalar(s, "n", DataType::kInt32);
  const Output w = constant(s.named("w"), 2.f);
  const Outputs result = while_loop(
      s, [&](const Scope& in, const Outputs& v) { return less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {add(in, v[0], 1), mul(in, v[1], w)};
      },
      {0, x});
  CHECK(result.size() == 2);
  CHECK(result[1].name() == "while/Exit_1:0");
  check_valid(s);
  CHECK(dump(graph) ==
        "x = Placeholder()\n"
        "n = Placeholder()\n"
        "w = Const()\n"
        "while/Const = Const()\n"
        "while/Enter = Enter(while/Const)\n"
        "while/Enter_1 = Enter(x)\n"
        "while/Merge = Merge(while/Enter, while/NextIteration)\n"
        "while/Merge_1 = Merge(while/Enter_1, while/NextIteration_1)\n"
        "while/Less/Enter = Enter*(n)\n"
        "while/Less = Less(while/Merge, while/Less/Enter)\n"
        "while/LoopCond = LoopCond(while/Less)\n"
        "while/Switch = Switch(while/Merge, while/LoopCond)\n"
        "while/Switch_1 = Switch(while/Merge_1, while/LoopCond)\n"
        "while/Identity = Identity(while/Switch:1)\n"
        "while/Identity_1 = Identity(while/Switch_1:1)\n"
        "while/AddV2/y = Const(^while/Identity)\n"
        "while/AddV2 = AddV2(while/Identity, while/AddV2/y)\n"
        "while/Mul/Enter = Enter*(w)\n"
        "while/Mul = Mul(while/Identity_1, while/Mul/Enter)\n"
        "while/NextIteration = NextIteration(while/AddV2)\n"
        "while/NextIteration_1 = NextIteration(while/Mul)\n"
        "while/Exit = Exit(while/Switch)\n"
        "while/Exit_1 = Exit(while/Switch_1)\n");
}

TEST_CASE("a conditional has pivots, a Switch per capture and a Merge") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Output x = scalar(s, "x");
  cond(
      s, p, [&](const Scope& in) { return add(in, add(in, x, x), 1); },
      [&](const Scope& in) { return constant(in, 3.f); });
  check_valid(s);
  CHECK(dump(graph) ==
        "p = Placeholder()\n"
        "x = Placeholder()\n"
        "cond/Switch = Switch(p, p)\n"
        "cond/switch_t = Identity(cond/Switch:1)\n"
        "cond/switch_f = Identity(cond/Switch)\n"
        "cond/pred_id = Identity(p)\n"
        "cond/AddV2/Switch = Switch(x, cond/pred_id)\n"
        "cond/AddV2 = AddV2(cond/AddV2/Switch:1, cond/AddV2/Switch:1)\n"
        "cond/AddV2/y = Const(^cond/switch_t)\n"
        "cond/AddV2_1 = AddV2(cond/AddV2, cond/AddV2/y)\n"
        "cond/Const = Const(^cond/switch_f)\n"
        "cond/Merge = Merge(cond/Const, cond/AddV2_1)\n");
}

TEST_CASE("a tensor returned as it is goes through a Switch") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Output x = scalar(s, "x");
  const Output y = scalar(s, "y");
  cond(
      s, p, [&](const Scope&) { return x; }, [&](const Scope&) { return y; });
  check_valid(s);
  CHECK(dump(graph, "cond/Merge") ==
        "cond/Merge = Merge(cond/Switch_2, cond/Switch_1:1)");
  CHECK(dump(graph, "cond/Switch_2") ==
        "cond/Switch_2 = Switch(y, cond/pred_id)");
}

TEST_CASE("an operation returned by a branch becomes a bool held back by it") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Outputs r = cond(
      s, p, [&](const Scope& in) { return no_op(in.named("effect")); },
      [&](const Scope& in) { return constant(in, true); });
  check_valid(s);
  CHECK(r[0].dtype() == DataType::kBool);
  CHECK(dump(graph, "cond/effect") == "cond/effect = NoOp(^cond/switch_t)");
  CHECK(dump(graph, "cond/Identity") ==
        "cond/Identity = Identity(cond/switch_t, ^cond/effect)");
}

TEST_CASE("captures enter every loop on the way, each once") {
  Graph graph;
  Scope s(graph);
  const Output x = scalar(s, "x");
  const Output y = scalar(s, "y");
  repeat(s.named("a"), x, y, [&](const Scope& a, Output) {
    return repeat(a.named("b"), x, y, [&](const Scope& b, Output v) {
      return mul(b, add(b, v, x), x);
    });
  });
  check_valid(s);
  CHECK(dump(graph, "a/Less/Enter") == "a/Less/Enter = Enter*(y)");
  CHECK(dump(graph, "a/b/Less/Enter") ==
        "a/b/Less/Enter = Enter*(a/Less/Enter)");
  // x enters a for the initial value of b's variable, and b for its body.
  CHECK(dump(graph, "a/b/Enter") ==
        "a/b/Enter = Enter(a/b/Enter/Enter, ^a/Identity)");
  CHECK(dump(graph, "a/b/AddV2/Enter") ==
        "a/b/AddV2/Enter = Enter*(a/b/Enter/Enter)");
  CHECK(dump(graph, "a/b/Mul") == "a/b/Mul = Mul(a/b/AddV2, a/b/AddV2/Enter)");
}

TEST_CASE("a conditional in a loop captures through both") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Output x = scalar(s, "x");
  repeat(s, x, x, [&](const Scope& in, Output v) {
    return cond(
        in, p, [&](const Scope& t) { return mul(t, x, 2); },
        [&](const Scope&) { return v; })[0];
  });
  check_valid(s);
  // The predicate is a loop constant: the pivot keeps it from the last,
  // empty iteration.
  CHECK(dump(graph, "while/cond/Switch") ==
        "while/cond/Switch = Switch(while/cond/Switch/Enter, "
        "while/cond/Switch/Enter, ^while/Identity)");
  CHECK(dump(graph, "while/cond/pred_id") ==
        "while/cond/pred_id = Identity(while/cond/Switch/Enter, "
        "^while/Identity)");
  CHECK(dump(graph, "while/cond/Mul/Switch") ==
        "while/cond/Mul/Switch = Switch(while/Less/Enter, while/cond/pred_id)");
  CHECK(dump(graph, "while/cond/Merge") ==
        "while/cond/Merge = Merge(while/cond/Switch_1, while/cond/Mul)");
}

TEST_CASE("a loop in a conditional captures through both") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Output x = scalar(s, "x");
  cond(
      s, p,
      [&](const Scope& t) {
        const Output z = constant(t, 1.f);
        return repeat(t, 0.f, x,
                      [&](const Scope& in, Output v) { return add(in, v, z); });
      },
      [&](const Scope& f) {
        return cond(
            f, p, [&](const Scope&) { return x; },
            [&](const Scope& in) { return constant(in, 0.f); });
      });
  check_valid(s);
  CHECK(dump(graph, "cond/while/Const") ==
        "cond/while/Const = Const(^cond/switch_t)");
  CHECK(dump(graph, "cond/while/Less/Enter") ==
        "cond/while/Less/Enter = Enter*(cond/while/Less/Switch:1)");
  CHECK(dump(graph, "cond/while/AddV2/Enter") ==
        "cond/while/AddV2/Enter = Enter*(cond/Const)");
  CHECK(dump(graph, "cond/cond/Switch") ==
        "cond/cond/Switch = Switch(cond/cond/Switch/Switch, "
        "cond/cond/Switch/Switch)");
  CHECK(dump(graph, "cond/cond/Switch_2") ==
        "cond/cond/Switch_2 = Switch(cond/cond/Switch_1, cond/cond/pred_id)");
  CHECK(dump(graph, "cond/Merge") ==
        "cond/Merge = Merge(cond/cond/Merge, cond/while/Exit)");
}

TEST_CASE("ops of loop constants alone wait for the pivot") {
  Graph graph;
  Scope s(graph);
  const Output x = scalar(s, "x");
  const Output p = scalar(s, "p", DataType::kBool);
  while_loop(
      s, [&](const Scope&, const Outputs&) { return p; },
      [&](const Scope& in, const Outputs&) -> Outputs {
        return {mul(in, x, x), x};
      },
      {x, x});
  check_valid(s);
  CHECK(dump(graph, "while/LoopCond") ==
        "while/LoopCond = LoopCond(while/LoopCond/Enter, ^while/Merge)");
  CHECK(dump(graph, "while/Mul") ==
        "while/Mul = Mul(while/Mul/Enter, while/Mul/Enter, ^while/Identity)");
  CHECK(dump(graph, "while/NextIteration_1") ==
        "while/NextIteration_1 = NextIteration(while/Mul/Enter, "
        "^while/Identity)");
}

TEST_CASE("a body that returns a tensor of the predicate waits for its pivot") {
  Graph graph;
  Scope s(graph);
  const Output x = scalar(s, "x");
  Output twice;
  while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        twice = add(in, v[0], v[0]);
        return less(in, twice, 9);
      },
      [&](const Scope&, const Outputs&) { return twice; }, {x});
  check_valid(s);
  CHECK(dump(graph, "while/NextIteration") ==
        "while/NextIteration = NextIteration(while/AddV2, ^while/Identity)");
}

TEST_CASE("maximum_iterations adds a counter that is not a result") {
  Graph graph;
  Scope s(graph);
  const Output x = scalar(s, "x");
  const Outputs r = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        CHECK(v.size() == 1);
        return less(in, v[0], 3);
      },
      [&](const Scope& in, const Outputs& v) { return add_one(in, v[0]); }, {x},
      {.parallel_iterations = 4, .maximum_iterations = 7});
  check_valid(s);
  CHECK(r.size() == 1);
  CHECK(r[0].name() == "while/Exit_1:0");
  CHECK(dump(graph, "while/Less") ==
        "while/Less = Less(while/Merge, while/Less/Enter)");
  CHECK(dump(graph, "while/Less/Enter") ==
        "while/Less/Enter = Enter*(while/maximum_iterations)");
  CHECK(dump(graph, "while/LogicalAnd") ==
        "while/LogicalAnd = LogicalAnd(while/Less, while/Less_1)");
  CHECK(dump(graph, "while/NextIteration") ==
        "while/NextIteration = NextIteration(while/AddV2)");
  CHECK(graph.find("while/Enter_1")
            ->attr<int64_t>("parallel_iterations")
            .value() == 4);
}

TEST_CASE("every loop has a frame name of its own") {
  Graph graph;
  const auto frame = [&](const char* node) {
    return graph.find(node)->attr<std::string>("frame_name").value();
  };
  Scope s(graph);
  const Output x = scalar(s, "x");
  repeat(s, x, x, add_one);
  repeat(s, x, x, add_one);
  CHECK(frame("while/Enter") == "while/while_context");
  CHECK(frame("while_1/Enter") == "while_1/while_context");
  // A second root scope does not know the names of the first.
  Scope other(graph);
  repeat(other, x, x, add_one);
  CHECK(frame("while/Enter_1") == "while/while_context_1");
  check_valid(other);
}

TEST_CASE("a loop's control inputs are waited for by its Enters") {
  Graph graph;
  Scope s(graph);
  const Output x = scalar(s, "x");
  const Output y = scalar(s, "y");
  const Output before = no_op(s.named("before"));
  repeat(s.with_control_dependencies(before), x, y, add_one);
  check_valid(s);
  CHECK(dump(graph, "while/Enter") == "while/Enter = Enter(x, ^before)");
  CHECK(dump(graph, "while/Less/Enter") ==
        "while/Less/Enter = Enter*(y, ^before)");
  CHECK(dump(graph, "while/AddV2") ==
        "while/AddV2 = AddV2(while/Identity, while/AddV2/y)");
}

TEST_CASE("a control edge into a loop goes through a constant Enter") {
  Graph graph;
  Scope s(graph);
  const Output x = scalar(s, "x");
  const Output before = no_op(s.named("before"));
  repeat(s, x, x, [&](const Scope& in, Output v) {
    const Scope waits = in.with_control_dependencies(before);
    const Output n = neg(waits.named("n"), v);
    return add(waits, n, constant(waits.named("c"), 1.f));
  });
  check_valid(s);
  CHECK(dump(graph, "while/n/control") == "while/n/control = Const(^before)");
  CHECK(dump(graph, "while/n/control/Enter") ==
        "while/n/control/Enter = Enter*(while/n/control)");
  CHECK(dump(graph, "while/n") ==
        "while/n = Neg(while/Identity, ^while/n/control/Enter)");
  // The loop constant alone would let it run in the last iteration.
  CHECK(dump(graph, "while/c") ==
        "while/c = Const(^while/n/control/Enter, ^while/Identity)");
}

TEST_CASE("a control edge into a branch is direct, and out of it too") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Output before = no_op(s.named("before"));
  Output inside;
  cond(
      s, p,
      [&](const Scope& t) {
        inside = constant(t.named("c").with_control_dependencies(before), 1.f);
        return inside;
      },
      [&](const Scope& f) { return constant(f, 2.f); });
  no_op(s.named("after").with_control_dependencies(inside));
  check_valid(s);
  CHECK(dump(graph, "cond/c") == "cond/c = Const(^before, ^cond/switch_t)");
  CHECK(dump(graph, "after") == "after = NoOp(^cond/c)");
}

TEST_CASE("a conditional's control inputs hold back pivots and Switches") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Output x = scalar(s, "x");
  const Output before = no_op(s.named("before"));
  cond(
      s.with_control_dependencies(before), p, [&](const Scope&) { return x; },
      [&](const Scope& f) { return constant(f, 0.f); });
  check_valid(s);
  CHECK(dump(graph, "cond/Switch") == "cond/Switch = Switch(p, p, ^before)");
  CHECK(dump(graph, "cond/pred_id") == "cond/pred_id = Identity(p, ^before)");
  CHECK(dump(graph, "cond/Switch_1") ==
        "cond/Switch_1 = Switch(x, cond/pred_id)");
  CHECK(dump(graph, "cond/Const") == "cond/Const = Const(^cond/switch_f)");
}

TEST_CASE("a tensor of one branch can be used in the other, dead there") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  Output inside;
  cond(
      s, p,
      [&](const Scope& t) { return inside = constant(t.named("c"), 1.f); },
      [&](const Scope& f) { return neg(f, inside); });
  check_valid(s);
  CHECK(dump(graph, "cond/Neg/Switch") ==
        "cond/Neg/Switch = Switch(cond/c, cond/pred_id)");
}

TEST_CASE("case_ nests conditionals and switch_case searches") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  const Output i = scalar(s, "i", DataType::kInt32);
  const auto number = [](float x) {
    return [x](const Scope& in) { return constant(in, x); };
  };
  const Outputs a = case_(s, {{p, number(1)}, {p, number(2)}}, number(3));
  CHECK(dump(graph, "case/cond/Merge") ==
        "case/cond/Merge = Merge(case/cond/cond/Merge, case/cond/Const)");
  const Outputs b =
      switch_case(s, i, {number(1), number(2), number(3), number(4)});
  check_valid(s);
  CHECK(a.size() == 1);
  CHECK(b.size() == 1);
  // Three comparisons with the middle: one outside, one for each half.
  int conditionals = 0;
  for (const Node* node : graph.nodes())
    conditionals += node->name().starts_with("switch_case/") &&
                    node->name().ends_with("/pred_id");
  CHECK(conditionals == 3);
}

TEST_CASE("references are switched and entered as references") {
  Graph graph;
  Scope s(graph);
  const Output p = scalar(s, "p", DataType::kBool);
  OpRegistry::global().add(OpDefBuilder("TestVariable")
                               .output("ref: Ref(float)")
                               .stateful()
                               .shape(scalar_shape));
  const Output ref = s.named("v").op("TestVariable", {});
  cond(
      s, p, [&](const Scope&) { return ref; },
      [&](const Scope&) { return ref; });
  check_valid(s);
  CHECK(dump(graph, "cond/Merge") ==
        "cond/Merge = RefMerge(cond/Switch_2, cond/Switch_1:1)");
  CHECK(dump(graph, "cond/Switch_2") ==
        "cond/Switch_2 = RefSwitch(v, cond/pred_id)");
  // A variable of a loop is a value: the body reads what entered.
  const Output r = repeat(
      s, 0.f, ref, [&](const Scope& in, Output v) { return add(in, v, ref); });
  check_valid(s);
  CHECK(r.dtype() == DataType::kFloat);
  CHECK(dump(graph, "while/Less/Enter") == "while/Less/Enter = RefEnter*(v)");
}

}  // namespace tagflow::graph
