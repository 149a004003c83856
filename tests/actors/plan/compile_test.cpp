// Limits on the size of plans and on the time to make them, and the output of
// the stages before the plan.
#include "actors/plan/compile.h"

#include <doctest/doctest.h>

#include "devices/device_registry.h"
#include "devices/kernel_catalog.h"
#include "tests/actors/devices.h"
#include "tests/actors/sessions.h"
#include "tests/graph/hand_made_functions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Node* waiting_const(Graph& graph, std::string name, std::vector<Node*> control,
                    int value = 1) {
  return add(graph, std::move(name), "Const", {},
             {{"value", Tensor::scalar(value)}, {"dtype", DataType::kInt32}},
             std::move(control));
}

Node* int_input(Graph& graph, std::string name) {
  return add(graph, std::move(name), "Placeholder", {},
             {{"dtype", DataType::kInt32}, {"shape", PartialShape({})}});
}

// The plan of a signature by names; a target is "^name".
std::unique_ptr<Plan> plan_of(const Graph& graph,
                              const std::vector<std::string>& feeds,
                              const std::vector<std::string>& wanted,
                              const PassSet& passes,
                              bool through_wire = false) {
  Request request;
  for (const std::string& name : feeds)
    request.feeds.push_back(must(graph.endpoint(name)));
  for (const std::string& name : wanted) {
    if (name.starts_with('^')) {
      request.targets.push_back(graph.find(name.substr(1)));
    } else {
      request.fetches.push_back(must(graph.endpoint(name)));
    }
  }
  const auto devices = make_devices("cpu:1");
  SessionOptions options;
  options.passes = passes;
  options.through_wire = through_wire;
  Distribution distribution = must(distribute({graph,
                                               must(FrameMap::build(graph)),
                                               options,
                                               devices::infos_of(devices),
                                               devices::RegisteredKernels(),
                                               {}},
                                              request));
  auto plans = must(
      actors::compile(std::move(distribution.partitions), options, devices));
  REQUIRE(plans.size() == 1);
  return std::move(plans[0]);
}

size_t num_edges(const Plan& plan) {
  size_t edges = 0;
  for (const FramePlan& frame : plan.frames) edges += frame.edges.size();
  return edges;
}

// Passes may fold, share or take out what these tests are about.
const PassSet kEdgesOnly = PassSet::only(Pass::kEdges);

}  // namespace

TEST_CASE("constants that wait for constants, by ever more ways, are planned") {
  Graph graph;
  Node* x = int_input(graph, "x");
  Node* a = waiting_const(graph, "a", {x});
  Node* b = waiting_const(graph, "b", {x}, 2);
  for (int i = 0; i < 60; ++i) {
    Node* next = waiting_const(graph, fmt::format("a{}", i), {a, b});
    b = waiting_const(graph, fmt::format("b{}", i), {a, b}, 2);
    a = next;
  }
  add(graph, "end", "NoOp", {}, {}, {a, b});
  for (const PassSet& passes : {PassSet(), kEdgesOnly, PassSet::none()}) {
    CAPTURE(passes.to_string());
    const auto plan = plan_of(graph, {"x"}, {"^end"}, passes);
    if (passes.has(Pass::kEdges)) CHECK(num_edges(*plan) == 1);
  }
}

TEST_CASE("a node that waits for a chain of constants waits for its start") {
  Graph graph;
  Node* x = int_input(graph, "x");
  Node* y = int_input(graph, "y");
  Node* last = x;
  std::vector<std::string> ends;
  constexpr int kNumber = 30'000;
  for (int i = 0; i < kNumber; ++i) {
    last = waiting_const(graph, fmt::format("c{}", i), {last});
    Node* end = add(graph, fmt::format("n{}", i), "Neg", {{y, 0}}, {}, {last});
    ends.push_back("^" + end->name());
  }
  const auto plan = plan_of(graph, {"x", "y"}, ends, kEdgesOnly);
  CHECK(num_edges(*plan) == 2 * kNumber);
}

TEST_CASE("a constant that waits for many is waited for in their place") {
  Graph graph;
  std::vector<std::string> feeds, ends;
  Node* last = nullptr;
  constexpr int kNumber = 2'000;
  for (int i = 0; i < kNumber; ++i) {
    feeds.push_back(fmt::format("x{}", i));
    std::vector<Node*> awaited = {int_input(graph, feeds.back())};
    if (last != nullptr) awaited.push_back(last);
    last = waiting_const(graph, fmt::format("c{}", i), awaited);
    ends.push_back(
        "^" + add(graph, fmt::format("n{}", i), "Neg", {{last, 0}})->name());
  }
  for (const PassSet& passes : {PassSet(), kEdgesOnly}) {
    CAPTURE(passes.to_string());
    CHECK(num_edges(*plan_of(graph, feeds, ends, passes)) < 20 * kNumber);
  }
}

TEST_CASE("a constant is as dead as any of the many that it waits for") {
  Graph graph;
  Node* p = add(graph, "p", "Placeholder", {},
                {{"dtype", DataType::kBool}, {"shape", PartialShape({})}});
  Node* x = int_input(graph, "x");
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  std::vector<Node*> awaited;
  for (int i = 0; i < 40; ++i)
    awaited.push_back(add(graph, fmt::format("n{}", i), "Neg", {{x, 0}}));
  awaited.push_back(add(graph, "yes", "Identity", {{branch, 1}}));
  Node* much = waiting_const(graph, "much", awaited, 5);
  Node* more = waiting_const(graph, "more", {much}, 6);
  Node* sum = add(graph, "sum", "AddV2", {{much, 0}, {more, 0}});
  add(graph, "merge", "Merge", {{branch, 0}, {sum, 0}});
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    for (const bool taken : {true, false}) {
      const auto merged = must_run(
          *session, {{"p", Tensor::scalar(taken)}, {"x", Tensor::scalar(3)}},
          {"merge"});
      CHECK(merged[0].scalar_value<int32_t>() == (taken ? 11 : 3));
    }
  }
}

TEST_CASE("a plan takes a node with very many inputs and control inputs") {
  Graph graph;
  Node* x = int_input(graph, "x");
  std::vector<Node*> awaited;
  std::vector<Endpoint> read;
  for (int i = 0; i < 50'000; ++i) {
    awaited.push_back(add(graph, fmt::format("n{}", i), "Neg", {{x, 0}}));
    read.push_back({awaited.back(), 0});
  }
  add(graph, "all", "NoOp", {}, {}, awaited);
  add(graph, "sum", "AddN", read, {{"N", int64_t(read.size())}}, awaited);
  SessionOptions options;
  options.passes = PassSet::none();
  const auto session = make_session(options, graph);
  const auto sum = session->run({{"x", Tensor::scalar(-1)}}, {"sum"}, {"all"},
                                within_a_minute());
  CHECK(must(sum)[0].scalar_value<int32_t>() == 50'000);
}

TEST_CASE("a plan makes no strings that the run itself never makes") {
  Graph graph;
  Node* p = add(graph, "p", "Placeholder", {},
                {{"dtype", DataType::kBool}, {"shape", PartialShape({})}});
  Node* no =
      add(graph, "no", "Const", {},
          {{"value", Tensor::scalar("no")}, {"dtype", DataType::kString}});
  Node* branch = add(graph, "branch", "Switch", {{no, 0}, {p, 0}});
  Node* pivot = add(graph, "pivot", "Identity", {{branch, 1}});
  Node* yes =
      add(graph, "yes", "Const", {},
          {{"value", Tensor::scalar("yes")}, {"dtype", DataType::kString}},
          {pivot});
  for (int i = 0; i < 45; ++i)
    yes = add(graph, fmt::format("s{}", i), "StringJoin", {{yes, 0}, {yes, 0}});
  add(graph, "merge", "Merge", {{branch, 0}, {yes, 0}});
  const auto session = make_session({}, graph);
  const auto merged =
      must_run(*session, {{"p", Tensor::scalar(false)}}, {"merge"});
  CHECK(merged[0].scalar_value<std::string>() == "no");
}

TEST_CASE("a plan is the same when its program goes through the wire") {
  Graph graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  const Counter loop =
      counter(graph, "loop", {start, 0}, {int_input(graph, "n"), 0});
  add(graph, "end", "NoOp", {}, {}, {loop.exit});
  const std::vector<std::string> wanted = {"loop/exit", "^end"};
  for (const PassSet& passes : {PassSet(), PassSet::none()}) {
    CAPTURE(passes.to_string());
    const auto plan = plan_of(graph, {"n"}, wanted, passes);
    const auto wired = plan_of(graph, {"n"}, wanted, passes, true);
    REQUIRE(wired->frames.size() == plan->frames.size());
    for (size_t i = 0; i < plan->frames.size(); ++i) {
      const auto& nodes = plan->frames[i].nodes;
      REQUIRE(wired->frames[i].nodes.size() == nodes.size());
      for (size_t k = 0; k < nodes.size(); ++k)
        CHECK(wired->frames[i].nodes[k].node->name() == nodes[k].node->name());
    }
  }
}

TEST_CASE("a session whose programs go through the wire says what cannot") {
  Graph graph;
  Node* one = constant(graph, "one", Tensor::scalar(1.f));
  graph.set_attr(one, "_note\xff", true);
  add(graph, "y", "Identity", {{one, 0}});
  const auto run = [&](bool through_wire) {
    SessionOptions options;
    options.through_wire = through_wire;
    options.passes = PassSet::none();
    return make_session(options, graph)->run({}, {"y"}).status();
  };
  must(run(false));
  CHECK(contains(message_of(run(true), Code::kDataLoss),
                 "AttrEntry.key is not UTF-8: \"_note\\xff\""));
}

TEST_CASE("a target that is fed is run, with what it needs") {
  Graph graph;
  Node* x = add(graph, "x", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  Node* checked = add(graph, "checked", "CheckNumerics", {{x, 0}},
                      {{"message", "x is bad"}});
  add(graph, "y", "Neg", {{checked, 0}});
  const auto session = make_session({}, graph);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto run = [&](float value) {
    return session->run(
        {{"x", Tensor::scalar(value)}, {"checked", Tensor::scalar(2.f)}}, {"y"},
        {"checked"}, within_a_minute());
  };
  CHECK(must(run(1.f))[0].scalar_value<float>() == -2.f);
  CHECK(contains(message_of(run(nan).status(), Code::kInvalidArgument),
                 "x is bad"));
}

TEST_CASE("a function that expands to what is not valid is refused") {
  const AttrMap in_loop = {{"T", DataType::kInt32}, {"frame_name", "loop"}};
  const std::vector<NodeDef> entered = {
      body_node("enter", "Enter", {"a"}, in_loop),
      body_const("limit", Tensor::scalar(true)),
      body_node("in", "Enter", {"limit:output:0"},
                {{"T", DataType::kBool}, {"frame_name", "loop"}}),
  };
  // A sum of what is in a loop and what is not; a loop of two predicates.
  std::vector<NodeDef> mixed = entered;
  mixed.push_back(body_int("sum", "AddV2", "enter:output:0", "a"));
  mixed.push_back(
      body_node("out", "Exit", {"sum:z:0"}, {{"T", DataType::kInt32}}));
  std::vector<NodeDef> twofold = entered;
  twofold.push_back(body_node("one", "LoopCond", {"in:output:0"}));
  twofold.push_back(body_node("two", "LoopCond", {"in:output:0"}));
  twofold.push_back(body_node("live", "Switch",
                              {"enter:output:0", "one:output:0"},
                              {{"T", DataType::kInt32}}));
  twofold.push_back(body_node("twice", "Switch",
                              {"live:output_true:0", "two:output:0"},
                              {{"T", DataType::kInt32}}));
  twofold.push_back(body_node("out", "Exit", {"twice:output_true:0"},
                              {{"T", DataType::kInt32}}));
  const std::pair<std::vector<NodeDef>, std::string> kBodies[] = {
      {mixed,
       "[AddV2] node \"y/sum\": input 0 (\"y/enter:0\") is in frame "
       "\"y/loop\""},
      {twofold,
       "[LoopCond] frame \"y/loop\" has \"y/one\" and \"y/two\"; a loop has "
       "one predicate"},
  };
  for (const auto& [nodes, message] : kBodies) {
    Graph graph;
    must(graph.library().add(function("F", {"a: int32"}, {"r: int32"}, nodes,
                                      {{"r", "out:output:0"}})));
    Node* x = int_input(graph, "x");
    add(graph, "y", "F", {{x, 0}});
    for (const SessionOptions& options : configurations()) {
      const auto session = make_session(options, graph);
      const auto run = session->run({{"x", Tensor::scalar(1)}}, {"y"}, {},
                                    within_a_minute());
      CHECK(
          contains(message_of(run.status(), Code::kInvalidArgument), message));
    }
  }
}
