#include "graph/analysis/whole_loops.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "graph/builder/map_fn.h"
#include "graph/op_registry.h"
#include "graph/placement/colocation.h"
#include "tests/graph/placement/devices_and_kernels.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// Which loops cannot be cut, and why.
std::string whole_in(const Program& program) {
  const FrameMap frames = must(FrameMap::build(program.graph));
  const auto reasons = find_whole_loops(program, frames);
  std::string text;
  for (const StaticFrame& frame : frames.frames())
    if (const std::string& why = reasons[size_t(frame.id)]; !why.empty())
      text += fmt::format("{}: {}\n", frame.name, why);
  return text;
}

std::string whole_in(const Graph& graph) {
  Program program;
  program.graph = graph.clone();
  return whole_in(program);
}

// "inner" in "outer"; both can be cut.
struct Nest {
  Graph graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(3));
  Counter outer = counter(graph, "outer", {start, 0}, {limit, 0});
  Counter inner = counter(graph, "inner", {outer.body, 0}, {outer.limit, 0});

  std::string whole() const { return whole_in(graph); }
  Node* switch_(const std::string& name, Node* value, Node* predicate) {
    return add(graph, name, "Switch", {{value, 0}, {predicate, 0}});
  }
  Node* merge(const std::string& name, Endpoint a, Endpoint b) {
    return add(graph, name, "Merge", {a, b});
  }
  // A bool of the outer loop's body.
  Node* bool_(const std::string& name) {
    return add(graph, name, "Less", {{outer.body, 0}, {outer.add, 0}});
  }
  // What the outer loop goes on with.
  void go_on_with(Endpoint value) {
    must(graph.set_input(outer.next, 0, value));
  }
};

const std::string kInner = "inner: it is in the loop of frame \"outer\": ";

// What is said of "outer", and so of "inner".
std::string of_both(const std::string& why) {
  return "outer: " + why + "\n" + kInner + why + "\n";
}

std::string may_be_dead(const std::string& cause) {
  return of_both(
      "NextIteration \"outer/next\" may be dead if LoopCond \"outer/cond\" "
      "is true; that depends on \"" +
      cause + "\"");
}

const std::string kNotEnded = of_both(
    "NextIteration \"outer/next\" may be live if LoopCond "
    "\"outer/cond\" is false");

}  // namespace

TEST_CASE("loops as they are built can be cut") {
  CHECK(Nest().whole() == "");

  // One that hands on what it captures, with a branch and a loop in it.
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {4});
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const auto below = [&](const Scope& in, const Outputs& v) {
    return ops::less(in, v[0], n);
  };
  const auto loop_with_branch = [&](const Scope& outer) {
    return while_loop(outer, below,
                      [&](const Scope& in, const Outputs& v) {
                        const Outputs inner = while_loop(
                            in, below,
                            [](const Scope& deep, const Outputs& w) {
                              return Outputs{ops::add(deep, w[0], 1), w[1]};
                            },
                            {v[0], v[1]});
                        const Outputs either = cond(
                            in, ops::less(in, v[0], 3),
                            [&](const Scope& yes) {
                              return Outputs{ops::neg(yes, inner[1])};
                            },
                            [&](const Scope&) { return Outputs{x}; });
                        return Outputs{ops::add(in, v[0], 1), either[0], x};
                      },
                      {0, x, x}, {.maximum_iterations = 9});
  };
  loop_with_branch(s);
  map_fn(
      s, [](const Scope& in, const Output& v) { return ops::neg(in, v); }, x);
  // And such a loop in a branch in a branch.
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const auto other = [&](const Scope&) { return Outputs{x}; };
  cond(
      s, p,
      [&](const Scope& in) {
        return cond(in, ops::less(in, n, 2), other, [&](const Scope& deep) {
          return Outputs{loop_with_branch(deep)[1]};
        });
      },
      other);
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  CHECK(must(FrameMap::build(graph)).frames().size() == 6);
  CHECK(whole_in(graph) == "");
}

TEST_CASE("a loop without a predicate is whole, and all inside it") {
  Nest nest;
  Graph& graph = nest.graph;
  must(graph.set_input(nest.outer.branch, 1, {nest.outer.less, 0}));
  graph.remove(std::vector{nest.outer.cond});
  CHECK(nest.whole() == of_both("it has no LoopCond"));
}

TEST_CASE("a frame that nothing goes around in can be cut without") {
  Nest nest;
  Node* enter = add(nest.graph, "once", "Enter", {{nest.start, 0}},
                    {{"frame_name", "f"}});
  Node* neg = add(nest.graph, "neg", "Neg", {{enter, 0}});
  add(nest.graph, "exit", "Exit", {{neg, 0}});
  CHECK(nest.whole() == "");
}

TEST_CASE("a loop inside one that can be cut may be whole") {
  Nest nest;
  Graph& graph = nest.graph;
  must(graph.set_input(nest.inner.branch, 1, {nest.inner.less, 0}));
  graph.remove(std::vector{nest.inner.cond});
  CHECK(nest.whole() == "inner: it has no LoopCond\n");
  // Not, if it is not known whether the outer one goes on.
  nest.go_on_with({nest.inner.exit, 0});
  CHECK(nest.whole() ==
        "outer: NextIteration \"outer/next\" may be live if LoopCond "
        "\"outer/cond\" is false\n"
        "inner: it has no LoopCond\n");
}

TEST_CASE("a loop that something else ends is whole") {
  Nest nest;
  Graph& graph = nest.graph;
  Node* no = constant(graph, "no", Tensor::scalar(false));
  Node* until = add(graph, "until", "Enter", {{no, 0}},
                    {{"frame_name", "outer"}, {"is_constant", true}});
  must(graph.set_input(nest.outer.branch, 1, {until, 0}));
  CHECK(nest.whole() == kNotEnded);
}

TEST_CASE("a predicate may reach its Switch through identities") {
  Nest nest;
  Graph& graph = nest.graph;
  Node* same = add(graph, "same", "Identity", {{nest.outer.cond, 0}});
  must(graph.set_input(nest.outer.branch, 1, {same, 0}));
  CHECK(nest.whole() == "");
}

TEST_CASE("a loop can be cut if both branches in its body go on") {
  Nest nest;
  Graph& graph = nest.graph;
  Node* p = nest.bool_("p");
  Node* fork = nest.switch_("fork", nest.outer.add, p);
  Node* no = add(graph, "no", "Neg", {{fork, 0}});
  Node* yes = add(graph, "yes", "Identity", {{fork, 1}});
  Node* merge = nest.merge("merge", {no, 0}, {yes, 0});
  nest.go_on_with({merge, 0});
  CHECK(nest.whole() == "");
  // One branch that does not depend on the predicate.
  must(graph.set_input(no, 0, {nest.outer.merge, 0}));
  CHECK(nest.whole() == kNotEnded);
  // But for the edge that makes it wait.
  graph.add_control_input(no, nest.outer.body);
  CHECK(nest.whole() == "");
}

TEST_CASE("a loop that one branch alone goes on with is whole") {
  Nest nest;
  Node* p = nest.bool_("p");
  Node* fork = nest.switch_("fork", nest.outer.add, p);
  nest.go_on_with({fork, 1});
  CHECK(nest.whole() == may_be_dead("p:0"));
  // Both branches, but of two predicates.
  Node* other = nest.switch_("other", nest.outer.add, nest.bool_("q"));
  nest.go_on_with({nest.merge("merge", {fork, 1}, {other, 0}), 0});
  CHECK(nest.whole() == may_be_dead("merge:0"));
  // A control edge does as well.
  nest.go_on_with({nest.outer.add, 0});
  nest.graph.add_control_input(
      nest.outer.next, add(nest.graph, "gate", "Identity", {{fork, 0}}));
  CHECK(nest.whole() == may_be_dead("p:0"));
}

TEST_CASE("nested conditionals can be cut if they join, in steps or at once") {
  Nest nest;
  Node* p = nest.bool_("p");
  Node* q = nest.bool_("q");
  Node* outer = nest.switch_("outer_fork", nest.outer.add, p);
  Node* inner = add(nest.graph, "inner_fork", "Switch", {{outer, 1}, {q, 0}});
  Node* joined = nest.merge("joined", {inner, 0}, {inner, 1});
  nest.go_on_with({nest.merge("all", {outer, 0}, {joined, 0}), 0});
  CHECK(nest.whole() == "");
  nest.go_on_with({add(nest.graph, "at_once", "Merge",
                       {{inner, 1}, {outer, 0}, {inner, 0}}),
                   0});
  CHECK(nest.whole() == "");
  nest.go_on_with({joined, 0});
  CHECK(nest.whole() == may_be_dead("p:0"));
  nest.go_on_with({nest.merge("two", {inner, 0}, {outer, 0}), 0});
  CHECK(nest.whole() == may_be_dead("two:0"));
}

TEST_CASE("a Switch of several ways joins if all of them do") {
  Nest nest;
  Node* fork =
      add(nest.graph, "fork", "_SwitchN",
          {{nest.outer.add, 0}, {nest.outer.body, 0}}, {{"num_outs", 3}});
  nest.go_on_with(
      {add(nest.graph, "all", "Merge", {{fork, 2}, {fork, 0}, {fork, 1}}), 0});
  CHECK(nest.whole() == "");
  nest.go_on_with({nest.merge("some", {fork, 2}, {fork, 0}), 0});
  CHECK(nest.whole() == may_be_dead("some:0"));
  nest.go_on_with({fork, 1});
  CHECK(nest.whole() == may_be_dead("outer/switch:1"));
}

TEST_CASE("an inner loop's result is as dead as its input") {
  Nest nest;
  nest.go_on_with({nest.inner.exit, 0});
  CHECK(nest.whole() == "");
  must(nest.graph.set_input(nest.inner.enter, 0, {nest.outer.merge, 0}));
  CHECK(nest.whole() == kNotEnded);
}

TEST_CASE("a loop cannot rely on an Exit that may be dead at its end") {
  Nest nest;
  Node* p = add(nest.graph, "p", "Less",
                {{nest.inner.merge, 0}, {nest.inner.limit, 0}});
  Node* sum = add(nest.graph, "sum", "AddV2",
                  {{nest.inner.merge, 0}, {nest.inner.limit, 0}});
  Node* fork = nest.switch_("fork", sum, p);
  Node* last =
      add(nest.graph, "last", "Switch", {{fork, 0}, {nest.inner.cond, 0}});
  Node* exit = add(nest.graph, "exit", "Exit", {{last, 0}});
  Node* both =
      add(nest.graph, "both", "AddV2", {{exit, 0}, {nest.outer.add, 0}});
  nest.go_on_with({both, 0});
  CHECK(nest.whole() ==
        "outer: NextIteration \"outer/next\" may be dead if LoopCond "
        "\"outer/cond\" is true; that depends on \"exit:0\"\n" +
            kInner +
            "NextIteration \"outer/next\" may be dead if LoopCond "
            "\"outer/cond\" is true; that depends on \"exit:0\"\n");
}

TEST_CASE("a predicate that may be dead ends its loop, and kills its Exits") {
  Nest nest;
  Node* p = add(nest.graph, "p", "Less",
                {{nest.inner.merge, 0}, {nest.inner.limit, 0}});
  Node* fork = nest.switch_("fork", nest.inner.less, p);
  must(nest.graph.set_input(nest.inner.cond, 0, {fork, 1}));
  CHECK(nest.whole() == "");
  nest.go_on_with({nest.inner.exit, 0});
  CHECK(nest.whole() == kNotEnded);
}

TEST_CASE("a loop one variable of which may be dead at first is whole") {
  Nest nest;
  Node* p = constant(nest.graph, "p", Tensor::scalar(true));
  Node* fork = nest.switch_("fork", nest.start, p);
  const auto variable = [&](const std::string& name, Endpoint start) {
    Node* enter =
        add(nest.graph, name, "Enter", {start}, {{"frame_name", "outer"}});
    Node* merge = add(nest.graph, name + "/merge", "Merge", {{enter, 0}, {}});
    Node* branch = nest.switch_(name + "/switch", merge, nest.outer.cond);
    Node* next =
        add(nest.graph, name + "/next", "NextIteration", {{branch, 1}});
    must(nest.graph.set_input(merge, 1, {next, 0}));
  };
  variable("live", {nest.start, 0});
  CHECK(nest.whole() == "");
  variable("odd", {fork, 1});
  CHECK(nest.whole() ==
        of_both("loop variable \"odd/merge\" may be dead if LoopCond "
                "\"outer/cond\" is not; that depends on \"p:0\""));
  // If the predicate is as dead, then no iteration goes on without it.
  must(nest.graph.set_input(nest.outer.enter, 0, {fork, 1}));
  CHECK(nest.whole() == "");
  must(nest.graph.set_input(nest.outer.enter, 0, {fork, 0}));
  CHECK(nest.whole() != "");
}

TEST_CASE("a dead loop constant counts only if a variable depends on it") {
  Nest nest;
  Node* p = constant(nest.graph, "p", Tensor::scalar(true));
  Node* fork = nest.switch_("fork", nest.start, p);
  Node* odd = add(nest.graph, "odd", "Enter", {{fork, 0}},
                  {{"frame_name", "outer"}, {"is_constant", true}});
  Node* sum = add(nest.graph, "sum", "AddV2", {{odd, 0}, {nest.outer.add, 0}});
  CHECK(nest.whole() == "");
  nest.go_on_with({sum, 0});
  CHECK(nest.whole() == may_be_dead("p:0"));
  // The predicate dies with it.
  must(nest.graph.set_input(nest.outer.less, 1, {odd, 0}));
  CHECK(nest.whole() == "");
}

TEST_CASE("a loop is whole if a token arrives in one iteration only") {
  for (const bool by_data : {true, false}) {
    CAPTURE(by_data);
    Nest nest;
    Node* first = add(nest.graph, "first", "Identity",
                      {{by_data ? nest.inner.enter : nest.inner.merge, 0}});
    if (!by_data) nest.graph.add_control_input(first, nest.inner.enter);
    CHECK(nest.whole() ==
          "inner: node \"first\" reads \"inner/enter\", which has no token in "
          "any but the first iteration\n");
  }
  Nest nest;
  add(nest.graph, "later", "Identity", {{nest.outer.next, 0}});
  CHECK(nest.whole() ==
        of_both("node \"later\" reads \"outer/next\", which has no token in "
                "the first iteration"));
  // Nor is a Merge of something else beside a variable.
  Nest mixed;
  add(mixed.graph, "mixed", "Merge",
      {{mixed.inner.enter, 0}, {mixed.inner.next, 0}, {mixed.inner.limit, 0}});
  CHECK(mixed.whole() ==
        "inner: node \"mixed\" reads \"inner/enter\", which has no token in "
        "any but the first iteration\n");
}

TEST_CASE("a loop is whole if it waits for its own end") {
  Nest nest;
  Node* again = add(nest.graph, "again", "Enter", {{nest.inner.exit, 0}},
                    {{"frame_name", "inner"}, {"is_constant", true}});
  CHECK(nest.whole() == "");
  Node* sum =
      add(nest.graph, "sum", "AddV2", {{again, 0}, {nest.inner.add, 0}});
  must(nest.graph.set_input(nest.inner.next, 0, {sum, 0}));
  const std::string why = "a loop of the program depends on its own end\n";
  CHECK(nest.whole() == "outer: " + why + "inner: " + why);
}

TEST_CASE("a reference read twice is not taken for one predicate") {
  Nest nest;
  OpRegistry::global().add(
      OpDefBuilder("TestBoolReference").output("ref: Ref(bool)"));
  Node* state = add(nest.graph, "state", "TestBoolReference");
  Node* p = add(nest.graph, "p", "RefEnter", {{state, 0}},
                {{"frame_name", "outer"}, {"is_constant", true}});
  const auto go_on_by = [&](const std::string& name, Node* a, Node* b) {
    Node* yes = nest.switch_(name + "/yes", nest.outer.add, a);
    Node* no = nest.switch_(name + "/no", nest.outer.add, b);
    nest.go_on_with({nest.merge(name, {yes, 1}, {no, 0}), 0});
  };
  go_on_by("by_reference", p, p);
  CHECK(nest.whole() == may_be_dead("by_reference:0"));
  Node* once = add(nest.graph, "once", "Identity", {{p, 0}});
  go_on_by("by_value", once, once);
  CHECK(nest.whole() == "");
  Node* twice = add(nest.graph, "twice", "Identity", {{p, 0}});
  go_on_by("by_two", once, twice);
  CHECK(nest.whole() == may_be_dead("by_two:0"));
}

TEST_CASE("a call in a loop is as live as its function's results") {
  // The outer loop goes on with what a function makes of a number.
  Nest nest;
  AttrMap attrs{{"Tin", std::vector{DataType::kInt32}},
                {"Tout", std::vector{DataType::kInt32}},
                {"f", FunctionRef{"f", {}}},
                {"body", int64_t(0)}};
  Node* call = add(nest.graph, "call", "_Call", {{nest.outer.add, 0}}, attrs);
  nest.go_on_with({call, 0});
  Program program;
  program.graph = nest.graph.clone();
  Program& body = *program.bodies.emplace_back(std::make_unique<Program>());
  Node* x = constant(body.graph, "x", Tensor::scalar(0));
  Node* p = constant(body.graph, "p", Tensor::scalar(true));
  Node* fork = add(body.graph, "fork", "Switch", {{x, 0}, {p, 0}});
  Node* again = add(body.graph, "again", "_Call", {{fork, 0}}, attrs);
  Node* merge = add(body.graph, "merge", "Merge", {{again, 0}, {fork, 1}});
  body.fetches = {{merge, 0}};
  CHECK(whole_in(program) == "");
  body.fetches = {{fork, 1}};
  CHECK(whole_in(program) == may_be_dead("call:0"));
}

TEST_CASE("a long chain of conditionals and predicates takes no square") {
  Nest nest;
  Node* value = nest.outer.add;
  Node* p = nest.bool_("p");
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = std::to_string(i);
    p = add(nest.graph, "same" + name, "Identity", {{p, 0}});
    Node* fork = nest.switch_("fork" + name, nest.outer.add, p);
    value = nest.merge("merge" + name, {fork, 0}, {fork, 1});
  }
  nest.go_on_with({value, 0});
  CHECK(nest.whole() == "");
  // Each of other predicates than the one before.
  Node* one_way = nest.outer.add;
  for (int i = 0; i < 5'000; ++i) {
    const std::string name = std::to_string(i);
    Node* fork =
        nest.switch_("narrow" + name, one_way, nest.bool_("bool" + name));
    one_way = add(nest.graph, "on" + name, "Identity", {{fork, 1}});
  }
  nest.go_on_with({one_way, 0});
  CHECK(nest.whole() != "");
}

TEST_CASE("a constraint that would split a whole loop is told why") {
  Nest nest;
  Graph& graph = nest.graph;
  Node* fork = nest.switch_("fork", nest.outer.add, nest.bool_("p"));
  nest.go_on_with({fork, 1});
  on(graph, nest.outer.less, "/cpu:0");
  on(graph, nest.inner.less, "/cpu:1");
  const auto devices = make_devices(2);
  CHECK(
      message_of(
          Colocation::build(whole(graph.clone()), devices, Kernels()).status(),
          Code::kInvalidArgument) ==
      "[placement] nodes \"outer/less\" and \"inner/less\" must be on one "
      "device, and none is possible: \"outer/less\" asks for \"/cpu:0\"; "
      "\"inner/less\" asks for \"/cpu:1\"; they are together because the "
      "loop of frame \"outer\" has to be on one device: NextIteration "
      "\"outer/next\" may be dead if LoopCond \"outer/cond\" is true; that "
      "depends on \"p:0\"");
  nest.go_on_with({nest.outer.add, 0});
  const auto groups =
      must(Colocation::build(whole(graph.clone()), devices, Kernels()));
  CHECK(groups.group_of(*nest.outer.less) != groups.group_of(*nest.inner.less));
}

TEST_CASE("a loop variable's edges are those of its Enter and back edge") {
  const Nest nest;
  CHECK(is_variable_edge(*nest.outer.merge, 0));
  CHECK(is_variable_edge(*nest.outer.merge, 1));
  CHECK_FALSE(is_variable_edge(*nest.outer.less, 0));
  CHECK_FALSE(is_variable_edge(*nest.outer.less, 1));
}
