#include "tests/reference/interpreter.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"

namespace tagflow::reference {

using graph::Graph;
using graph::Node;
using graph::Output;
using graph::Outputs;
using graph::Scope;
namespace ops = graph::ops;

namespace {

using Feeds = std::vector<std::pair<std::string, Tensor>>;

// The fetches as text: "3", "dead", "absent", or the error.
std::string run(const Graph& graph, const Feeds& feeds,
                const std::vector<std::string>& fetches,
                const InterpreterOptions& options = {}) {
  const Result<Interpretation> result =
      interpret(graph, feeds, fetches, options);
  if (!result.ok()) return result.status().to_string();
  std::string text;
  for (const Outcome& outcome : result->fetches) {
    if (!text.empty()) text += " ";
    if (outcome.state == State::kLive) {
      const Tensor& value = outcome.value;
      text += value.dtype() == DataType::kInt64
                  ? std::to_string(value.scalar_value<int64_t>())
                  : std::to_string(value.scalar_value<int32_t>());
    } else {
      text += outcome.state == State::kDead ? "dead" : "absent";
    }
  }
  return text;
}

std::string run(const Scope& s, const Feeds& feeds, const Outputs& outputs) {
  if (!s.ok()) return s.status().to_string();
  std::vector<std::string> names;
  for (const Output& output : outputs) names.push_back(output.name());
  return run(s.graph(), feeds, names);
}

Tensor yes() { return Tensor::scalar(true); }
Tensor no() { return Tensor::scalar(false); }

struct Fixture {
  Graph graph;
  Scope s{graph};
  Output p =
      ops::placeholder(s.named("p"), DataType::kBool, PartialShape::scalar());
  Output x = ops::constant(s, 5);

  // Nodes that the builder would not make.
  Node* add(const char* name, const char* op,
            std::vector<graph::Endpoint> inputs, AttrMap attrs = {},
            std::vector<Node*> controls = {}) {
    Result<Node*> node =
        graph.add(name, op, inputs, std::move(attrs), controls);
    REQUIRE_MESSAGE(node.ok(), node.status().to_string());
    return *node;
  }
};

}  // namespace

TEST_CASE("the worked example of a Fibonacci loop gives 1, 2, 2") {
  Graph graph;
  Scope s(graph);
  const Outputs r = graph::while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[2], 2); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {v[1], ops::add(in, v[0], v[1]), ops::add(in, v[2], 1)};
      },
      {1, 1, 1});
  CHECK(run(s, {}, r) == "1 2 2");
  CHECK(run(s, {}, {r[0]}) == "1");
  const auto result = interpret(graph, {}, {r[0].name()});
  REQUIRE(result.ok());
  CHECK(result->counts.frames == 1);
  CHECK(result->counts.iterations == 2);
  // All three Exits are pruned but one; it is dead once.
  // Iteration 0: 3 Merges, const Enter, Less, LoopCond, 3 Switches, ...
  CHECK(result->counts.skipped > 0);
  CHECK(!result->is_ambiguous);
}

TEST_CASE_FIXTURE(Fixture, "a Switch forwards to one side, the other is dead") {
  const auto sides = ops::switch_(s, x, p);
  const Outputs both = {sides.on_false, sides.on_true};
  CHECK(run(s, {{"p", yes()}}, both) == "dead 5");
  CHECK(run(s, {{"p", no()}}, both) == "5 dead");
}

TEST_CASE_FIXTURE(Fixture, "an op with a dead input is dead") {
  const auto sides = ops::switch_(s, x, p);
  const Output sum = ops::add(s, ops::add(s, x, sides.on_true), 1);
  CHECK(run(s, {{"p", yes()}}, {sum}) == "11");
  CHECK(run(s, {{"p", no()}}, {sum}) == "dead");
}

TEST_CASE_FIXTURE(Fixture, "a dead predicate kills both sides") {
  const auto pred = ops::switch_(s, p, p);
  const auto sides = ops::switch_(s, x, pred.on_true);
  CHECK(run(s, {{"p", no()}}, {sides.on_false, sides.on_true}) == "dead dead");
}

TEST_CASE_FIXTURE(Fixture, "a Merge takes what is live and says which") {
  const auto sides = ops::switch_(s, x, p);
  const auto merged = ops::merge(s, {sides.on_false, sides.on_true});
  const Outputs both = {merged.output, merged.value_index};
  CHECK(run(s, {{"p", yes()}}, both) == "5 1");
  CHECK(run(s, {{"p", no()}}, both) == "5 0");
  const auto dead = ops::merge(s, {sides.on_true, sides.on_true});
  CHECK(run(s, {{"p", no()}}, {dead.output, dead.value_index}) == "dead dead");
  CHECK(interpret(graph, {{"p", yes()}}, {dead.output.name()})->is_ambiguous);
}

TEST_CASE_FIXTURE(Fixture, "a dead control input kills, but not a Merge") {
  const auto sides = ops::switch_(s, x, p);
  const Output gate = ops::identity(s, sides.on_true);
  const Scope gated = s.with_control_dependencies(gate);
  const Outputs results = {ops::identity(gated, x),
                           ops::merge(gated, {x, sides.on_false}).output,
                           ops::merge(gated, {sides.on_true}).output};
  CHECK(run(s, {{"p", yes()}}, results) == "5 5 5");
  CHECK(run(s, {{"p", no()}}, {results[0], results[2]}) == "dead dead");
  CHECK(run(s, {{"p", no()}}, {results[1]}) == "5");
}

TEST_CASE_FIXTURE(Fixture, "a live Switch is live for those that wait for it") {
  const auto sides = ops::switch_(s, x, p);
  const Output after =
      ops::identity(s.with_control_dependencies(sides.on_true), x);
  CHECK(run(s, {{"p", no()}}, {after}) == "5");
}

TEST_CASE_FIXTURE(Fixture, "a ControlTrigger is live after the dead too") {
  const auto sides = ops::switch_(s, x, p);
  const Output gate = ops::identity(s, sides.on_true);
  const Output trigger =
      ops::control_trigger(s.with_control_dependencies(gate));
  const Output after = ops::neg(s.with_control_dependencies(trigger), x);
  CHECK(run(s, {{"p", no()}}, {after}) == "-5");
}

TEST_CASE_FIXTURE(Fixture, "a conditional runs one branch") {
  const Outputs r = graph::cond(
      s, p, [&](const Scope& t) { return ops::mul(t, x, 2); },
      [](const Scope& f) { return ops::constant(f, 7); });
  CHECK(run(s, {{"p", yes()}}, r) == "10");
  CHECK(run(s, {{"p", no()}}, r) == "7");
}

TEST_CASE_FIXTURE(Fixture, "a loop on an untaken branch is dead and ends") {
  Outputs inside;
  const auto count = [&](const Scope& t) {
    inside = graph::while_loop(
        t,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], x);
        },
        [](const Scope& in, const Outputs& v) -> Outputs {
          return {ops::add(in, v[0], 1), ops::add(in, v[1], v[0])};
        },
        {0, 0});
    return inside[1];
  };
  const Outputs r = graph::cond(
      s, p, count, [](const Scope& f) { return ops::constant(f, -1); });
  CHECK(run(s, {{"p", yes()}}, {r[0], inside[0], inside[1]}) == "10 5 10");
  CHECK(run(s, {{"p", no()}}, {r[0], inside[0], inside[1]}) == "-1 dead dead");
}

TEST_CASE_FIXTURE(Fixture, "a loop may make no trip") {
  const Outputs r = graph::while_loop(
      s, [&](const Scope&, const Outputs&) { return p; },
      [](const Scope& in, const Outputs& v) { return ops::neg(in, v[0]); }, {x},
      {.maximum_iterations = 3});
  CHECK(run(s, {{"p", no()}}, r) == "5");
  CHECK(run(s, {{"p", yes()}}, r) == "-5");
}

TEST_CASE("loops nest, with conditionals between them") {
  // sum over i < 4 of (i even ? sum over j < i of j * i : 100)
  Graph graph;
  Scope s(graph);
  const Outputs r = graph::while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 4); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output even = ops::equal(in, ops::floor_mod(in, v[0], 2), 0);
        const Outputs term = graph::cond(
            in, even,
            [&](const Scope& t) {
              return graph::while_loop(
                  t,
                  [&](const Scope& b, const Outputs& w) {
                    return ops::less(b, w[0], v[0]);
                  },
                  [&](const Scope& b, const Outputs& w) -> Outputs {
                    return {ops::add(b, w[0], 1),
                            ops::add(b, w[1], ops::mul(b, w[0], v[0]))};
                  },
                  {0, 0})[1];
            },
            [](const Scope& f) { return ops::constant(f, 100); });
        return {ops::add(in, v[0], 1), ops::add(in, v[1], term[0])};
      },
      {0, 0});
  CHECK(run(s, {}, {r[1]}) == "202");
}

TEST_CASE_FIXTURE(Fixture, "a token that nothing brings leaves ops absent") {
  // The Enter is of iteration 0 alone; the op waits for it in the others.
  const AttrMap frame = {{"frame_name", "f"}};
  Node* start = add("start", "Enter", {x.endpoint()}, frame);
  Node* merge = add("merge", "Merge", {{start, 0}, {}},
                    {{"N", 2}, {"T", DataType::kInt32}});
  Node* limit = add("limit", "Enter", {ops::constant(s, 8).endpoint()},
                    {{"frame_name", "f"}, {"is_constant", true}});
  Node* less = add("less", "Less", {{merge, 0}, {limit, 0}});
  Node* pred = add("pred", "LoopCond", {{less, 0}});
  Node* split = add("split", "Switch", {{merge, 0}, {pred, 0}});
  Node* one = add("one", "Enter", {ops::constant(s, 1).endpoint()},
                  {{"frame_name", "f"}, {"is_constant", true}});
  Node* sum = add("sum", "AddV2", {{split, 1}, {one, 0}});
  Node* next = add("next", "NextIteration", {{sum, 0}});
  REQUIRE(graph.set_input(merge, 1, {next, 0}).ok());
  add("exit", "Exit", {{split, 0}});
  Node* stale = add("stale", "AddV2", {{start, 0}, {split, 0}});
  add("never", "Exit", {{stale, 0}});
  CHECK(run(graph, {}, {"exit", "never"}) == "8 dead");
}

TEST_CASE_FIXTURE(Fixture, "a frame without all of its Enters does not end") {
  const AttrMap frame = {{"frame_name", "inner"}};
  // In an outer loop, iteration 1 lacks what its plain Enter brought.
  const AttrMap outer = {{"frame_name", "outer"}};
  Node* e = add("e", "Enter", {x.endpoint()}, outer);
  Node* m =
      add("m", "Merge", {{e, 0}, {}}, {{"N", 2}, {"T", DataType::kInt32}});
  Node* limit = add("limit", "Enter", {ops::constant(s, 6).endpoint()},
                    {{"frame_name", "outer"}, {"is_constant", true}});
  Node* pred =
      add("pred", "LoopCond", {{add("less", "Less", {{m, 0}, {limit, 0}}), 0}});
  Node* split = add("split", "Switch", {{m, 0}, {pred, 0}});
  Node* a = add("a", "Enter", {{e, 0}}, frame);
  Node* b = add("b", "Enter", {{m, 0}}, frame);
  Node* exit_a = add("exit_a", "Exit", {{add("ia", "Identity", {{a, 0}}), 0}});
  Node* exit_b = add("exit_b", "Exit", {{add("ib", "Identity", {{b, 0}}), 0}});
  Node* sum = add("sum", "AddV2", {{exit_b, 0}, {split, 1}});
  Node* next = add("next", "NextIteration", {{sum, 0}});
  REQUIRE(graph.set_input(m, 1, {next, 0}).ok());
  add("out", "Exit", {{split, 0}}, {}, {});
  Node* both = add("both", "AddV2", {{exit_a, 0}, {split, 0}});
  add("out_both", "Exit", {{both, 0}});
  CHECK(run(graph, {}, {"out", "out_both"}) == "10 dead");
}

TEST_CASE_FIXTURE(Fixture, "an Exit that is live twice is an error") {
  const AttrMap frame = {{"frame_name", "f"}};
  Node* start = add("start", "Enter", {x.endpoint()}, frame);
  Node* merge = add("merge", "Merge", {{start, 0}, {}},
                    {{"N", 2}, {"T", DataType::kInt32}});
  Node* limit = add("limit", "Enter", {ops::constant(s, 6).endpoint()},
                    {{"frame_name", "f"}, {"is_constant", true}});
  Node* pred = add("pred", "LoopCond",
                   {{add("less", "Less", {{merge, 0}, {limit, 0}}), 0}});
  Node* split = add("split", "Switch", {{merge, 0}, {pred, 0}});
  Node* sum = add("sum", "AddV2", {{split, 1}, {split, 1}});
  Node* next = add("next", "NextIteration", {{sum, 0}});
  REQUIRE(graph.set_input(merge, 1, {next, 0}).ok());
  add("exit", "Exit", {{merge, 0}});
  CHECK(run(graph, {}, {"exit"}) ==
        "Internal: [reference] Exit \"exit\" is live a second time, at "
        "\"/f/1\"");
}

TEST_CASE_FIXTURE(Fixture,
                  "the reference interpreter says where a kernel fails") {
  const Outputs r = graph::while_loop(
      s.named("w"),
      [&](const Scope& in, const Outputs& v) {
        return ops::greater(in, v[0], -9);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::sub(in, v[0], 1), ops::floor_div(in.named("d"), x, v[0])};
      },
      {2, x});
  const std::string text = run(s, {}, {r[1]});
  CHECK(text.find("node \"w/d\" at \"/w/while_context/2\": ") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(Fixture,
                  "the reference interpreter refuses what it cannot run") {
  const Outputs r = graph::while_loop(
      s, [&](const Scope&, const Outputs&) { return p; },
      [](const Scope& in, const Outputs& v) { return ops::neg(in, v[0]); },
      {x});
  REQUIRE(s.ok());
  CHECK(run(graph, {{"p", yes()}}, {r[0].name()}, {.max_firings = 500}) ==
        "ResourceExhausted: [reference] more than 500 firings");
  CHECK(run(graph, {}, {"nope"}).starts_with("NotFound"));
  CHECK(run(graph, {{"p", Tensor::scalar(1)}}, {"Const"}) ==
        "InvalidArgument: [reference] \"p\" is bool, fed with int32[]");
  CHECK(run(graph, {{"p", no()}}, {"while/Neg"}) ==
        "InvalidArgument: [reference] \"while/Neg:0\" is inside frame "
        "\"while/while_context\"");
  CHECK(run(graph, {{"p", no()}, {"while/Neg", Tensor::scalar(1)}}, {"Const"})
            .find("inside frame") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a feed replaces a tensor and all that led to it") {
  const Output y = ops::neg(s.named("y"), ops::check_numerics(s, 0.f, ""));
  const Output sum = ops::add(s, ops::cast(s, y, DataType::kInt32), x);
  CHECK(run(s, {{"y", Tensor::scalar(4.f)}}, {sum}) == "9");
  CHECK(run(s, {{"Const:0", Tensor::scalar(1)}}, {x}) == "1");
}

}  // namespace tagflow::reference
