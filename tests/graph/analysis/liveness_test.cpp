#include "graph/analysis/liveness.h"

#include <doctest/doctest.h>

#include <optional>

#include "graph/op_registry.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A graph of values and predicates, and what is live where in it.
struct Live {
  Graph graph;
  Node* x = constant(graph, "x", Tensor::scalar(0));
  Node* p = constant(graph, "p", Tensor::scalar(true));
  Node* q = constant(graph, "q", Tensor::scalar(true));
  std::vector<bool> may_be_dead;  // by body
  FrameMap frames;
  std::optional<Liveness> liveness;

  Node* switch_(const std::string& name, Endpoint value, Endpoint predicate) {
    return add(graph, name, "Switch", {value, predicate});
  }
  Node* merge(const std::string& name, std::vector<Endpoint> inputs) {
    return add(graph, name, "Merge", std::move(inputs));
  }
  // Visits all nodes; so they have to be inserted after what they depend on.
  void follow() {
    frames = must(FrameMap::build(graph));
    liveness.emplace(graph, frames, may_be_dead);
    for (Node* node : graph.nodes()) liveness->visit(*node);
  }
  // `p:0 = 1, merge:0 live`: a predicate by the port that it takes, and
  // whatever else is live.
  std::string text(Conditions::Set set) {
    std::string text;
    const Conditions& conditions = liveness->conditions();
    for (const Conditions::Id id : conditions.of(set)) {
      const Condition& condition = conditions.condition(id);
      if (!text.empty()) text += ", ";
      text += condition.source.to_string();
      text +=
          condition.ports == 0 ? " live" : fmt::format(" = {}", condition.port);
    }
    return text;
  }
  std::string of(const Endpoint& output) { return text(liveness->of(output)); }
};

}  // namespace

TEST_CASE("liveness: a Switch's output needs its inputs and its side") {
  Live live;
  Node* outer = live.switch_("outer", {live.x, 0}, {live.p, 0});
  // Both its inputs are in a branch: the predicate in the other one.
  Node* less = add(live.graph, "less", "Less", {{outer, 0}, {live.x, 0}});
  Node* inner = live.switch_("inner", {outer, 1}, {live.q, 0});
  Node* never = live.switch_("never", {outer, 1}, {less, 0});
  Node* sum = add(live.graph, "sum", "AddV2", {{inner, 0}, {live.x, 0}});
  Node* after = add(live.graph, "after", "NoOp", {}, {}, {sum});
  live.follow();
  CHECK(live.of({live.x, 0}) == "");
  CHECK(live.text(live.liveness->of(*outer)) == "");
  CHECK(live.of({outer, 0}) == "p:0 = 0");
  CHECK(live.of({outer, 1}) == "p:0 = 1");
  CHECK(live.text(live.liveness->of(*inner)) == "p:0 = 1");
  CHECK(live.of({inner, 1}) == "p:0 = 1, q:0 = 1");
  CHECK(live.of({never, 0}) == "p:0 = 0, p:0 = 1, less:0 = 0");
  CHECK(live.of({sum, 0}) == "p:0 = 1, q:0 = 0");
  CHECK(live.text(live.liveness->of(*after)) == "p:0 = 1, q:0 = 0");
}

TEST_CASE("liveness: a Merge of all sides is as live as what is before them") {
  Live live;
  Node* outer = live.switch_("outer", {live.x, 0}, {live.p, 0});
  Node* inner = live.switch_("inner", {outer, 1}, {live.q, 0});
  Node* neg = add(live.graph, "neg", "Neg", {{inner, 0}});
  Node* sides = live.merge("sides", {{inner, 1}, {neg, 0}});
  Node* all = live.merge("all", {{sides, 0}, {outer, 0}});
  Node* flat = live.merge("flat", {{inner, 0}, {outer, 0}, {inner, 1}});
  live.follow();
  CHECK(live.of({sides, 0}) == "p:0 = 1");
  CHECK(live.of({all, 0}) == "");
  CHECK(live.of({flat, 0}) == "");
}

TEST_CASE("liveness: a Merge of some sides is live, no more is known") {
  Live live;
  Node* outer = live.switch_("outer", {live.x, 0}, {live.p, 0});
  Node* inner = live.switch_("inner", {outer, 1}, {live.q, 0});
  Node* other = live.switch_("other", {live.x, 0}, {live.q, 0});
  // Left out: p and not q; and not p and not q.
  Node* some = live.merge("some", {{outer, 0}, {inner, 1}});
  Node* either = live.merge("either", {{outer, 1}, {other, 1}});
  // What both sides need is known all the same.
  Node* less = add(live.graph, "less", "Less", {{live.x, 0}, {outer, 1}});
  Node* third = live.switch_("third", {inner, 1}, {less, 0});
  Node* within = live.merge("within", {{inner, 0}, {third, 1}});
  live.follow();
  CHECK(live.of({some, 0}) == "some:0 live");
  CHECK(live.of({some, 1}) == "some:0 live");
  CHECK(live.of({either, 0}) == "either:0 live");
  CHECK(live.of({within, 0}) == "p:0 = 1, within:0 live");
}

TEST_CASE("liveness: an output of a _SwitchN needs its index") {
  Live live;
  const auto fork = [&](const std::string& name, int64_t outputs) {
    return add(live.graph, name, "_SwitchN", {{live.x, 0}, {live.x, 0}},
               {{"num_outs", outputs}});
  };
  Node* three = fork("three", 3);
  Node* one = fork("one", 1);
  Node* all = live.merge("all", {{three, 2}, {three, 0}, {three, 1}});
  Node* some = live.merge("some", {{three, 2}, {three, 0}});
  live.follow();
  CHECK(live.of({three, 0}) == "x:0 = 0");
  CHECK(live.of({three, 2}) == "x:0 = 2");
  CHECK(live.of({one, 0}) == "");
  CHECK(live.of({all, 0}) == "");
  CHECK(live.of({some, 0}) == "some:0 live");
}

TEST_CASE("liveness: a loop variable needs what its Enters need") {
  Live live;
  Node* outer = live.switch_("outer", {live.x, 0}, {live.p, 0});
  const Counter loop = counter(live.graph, "loop", {outer, 1}, {live.x, 0});
  live.follow();
  CHECK(live.of({loop.merge, 0}) == "p:0 = 1");
  CHECK(live.of({loop.less, 0}) == "p:0 = 1");
  CHECK(live.of({loop.limit, 0}) == "");
  CHECK(live.of({loop.next, 0}) == "p:0 = 1, loop/less:0 = 1");
}

TEST_CASE("liveness: an Exit needs what the loop's LoopCond needs") {
  Live live;
  Node* outer = live.switch_("outer", {live.x, 0}, {live.p, 0});
  const Counter loop = counter(live.graph, "loop", {outer, 1}, {live.x, 0});
  // These read what is live elsewhere.
  Node* early = add(live.graph, "early", "Exit", {{loop.merge, 0}});
  Node* other = add(live.graph, "other", "Exit", {{loop.body, 0}});
  live.follow();
  CHECK(live.of({loop.exit, 0}) == "loop/exit:0 live");
  live.liveness->end(*loop.cond);
  for (Node* exit : {loop.exit, early, other}) live.liveness->visit(*exit);
  CHECK(live.of({loop.exit, 0}) == "p:0 = 1");
  CHECK(live.of({early, 0}) == "early:0 live");
  CHECK(live.of({other, 0}) == "other:0 live");
}

TEST_CASE("liveness: an Exit is not relied on if its LoopCond may die") {
  Live live;
  const AttrMap frame = {{"frame_name", "loop"}};
  Node* enter = add(live.graph, "enter", "Enter", {{live.x, 0}}, frame);
  Node* limit = add(live.graph, "limit", "Enter", {{live.x, 0}},
                    {{"frame_name", "loop"}, {"is_constant", true}});
  Node* merge = live.merge("merge", {{enter, 0}, {}});
  Node* p = add(live.graph, "inside", "Less", {{limit, 0}, {merge, 0}});
  Node* fork = live.switch_("fork", {merge, 0}, {p, 0});
  Node* less = add(live.graph, "dying", "Less", {{fork, 0}, {limit, 0}});
  Node* cond = add(live.graph, "cond", "LoopCond", {{less, 0}});
  Node* branch = live.switch_("branch", {merge, 0}, {cond, 0});
  Node* next = add(live.graph, "next", "NextIteration", {{branch, 1}});
  must(live.graph.set_input(merge, 1, {next, 0}));
  Node* exit = add(live.graph, "exit", "Exit", {{branch, 0}});
  live.follow();
  CHECK(live.of({cond, 0}) == "inside:0 = 0");
  live.liveness->end(*cond);
  live.liveness->visit(*exit);
  CHECK(live.of({exit, 0}) == "exit:0 live");
}

TEST_CASE("liveness: an Exit of a frame without a loop needs its input") {
  Live live;
  Node* enter = add(live.graph, "enter", "Enter", {{live.x, 0}},
                    {{"frame_name", "once"}});
  Node* inside = add(live.graph, "inside", "Enter", {{live.p, 0}},
                     {{"frame_name", "once"}});
  Node* fork = live.switch_("fork", {enter, 0}, {inside, 0});
  Node* exit = add(live.graph, "exit", "Exit", {{fork, 1}});
  live.follow();
  CHECK(live.of({exit, 0}) == "inside:0 = 1");
}

TEST_CASE("liveness: a ControlTrigger needs nothing") {
  Live live;
  Node* fork = live.switch_("fork", {live.x, 0}, {live.p, 0});
  Node* dead = add(live.graph, "dead", "Neg", {{fork, 1}});
  Node* trigger = add(live.graph, "trigger", "ControlTrigger", {}, {}, {dead});
  live.follow();
  CHECK(live.text(live.liveness->of(*trigger)) == "");
}

TEST_CASE("liveness: a predicate is the same behind ops that hand it on") {
  Live live;
  Graph& graph = live.graph;
  Node* same = add(graph, "same", "Identity", {{live.p, 0}});
  Node* again = add(graph, "again", "Identity", {{same, 0}});
  Node* behind = live.switch_("behind", {live.x, 0}, {again, 0});
  const Counter loop = counter(graph, "loop", {live.x, 0}, {live.x, 0});
  Node* less = live.switch_("less", {loop.merge, 0}, {loop.less, 0});
  const auto enter = [&](const std::string& name, bool is_constant) {
    return add(graph, name, "Enter", {{again, 0}},
               {{"frame_name", "loop"}, {"is_constant", is_constant}});
  };
  Node* inside =
      live.switch_("inside", {loop.merge, 0}, {enter("constant", true), 0});
  Node* once =
      live.switch_("once", {loop.merge, 0}, {enter("variable", false), 0});
  live.follow();
  CHECK(live.of({behind, 1}) == "p:0 = 1");
  CHECK(live.of({loop.branch, 1}) == "loop/less:0 = 1");
  CHECK(live.of({less, 1}) == live.of({loop.branch, 1}));
  CHECK(live.of({inside, 1}) == "p:0 = 1");
  CHECK(live.of({once, 1}) == "variable:0 = 1");
}

TEST_CASE("liveness: each read of a reference is a predicate of its own") {
  OpRegistry::global().add(
      OpDefBuilder("TestBoolState").output("ref: Ref(bool)"));
  Live live;
  Node* state = add(live.graph, "state", "TestBoolState");
  Node* direct = live.switch_("direct", {live.x, 0}, {state, 0});
  Node* twice = live.switch_("twice", {live.x, 0}, {state, 0});
  Node* a = add(live.graph, "a", "Identity", {{state, 0}});
  Node* b = add(live.graph, "b", "Identity", {{state, 0}});
  Node* by_a = live.switch_("by_a", {live.x, 0}, {a, 0});
  Node* by_b = live.switch_("by_b", {live.x, 0}, {b, 0});
  live.follow();
  CHECK(live.of({direct, 0}) == "direct:0 live");
  CHECK(live.of({direct, 1}) == "direct:1 live");
  CHECK(live.of({twice, 1}) == "twice:1 live");
  CHECK(live.of({by_a, 1}) == "a:0 = 1");
  CHECK(live.of({by_b, 1}) == "b:0 = 1");
}

TEST_CASE("liveness: a call's result that may die is a condition itself") {
  Live live;
  live.may_be_dead = {false, true};
  Node* fork = live.switch_("fork", {live.x, 0}, {live.p, 0});
  const auto call = [&](const std::string& name, int64_t body) {
    return add(live.graph, name, "_Call", {{fork, 1}},
               {{"Tin", std::vector{DataType::kInt32}},
                {"Tout", std::vector{DataType::kInt32}},
                {"f", FunctionRef{name, {}}},
                {"body", body}});
  };
  Node* sure = call("sure", 0);
  Node* unsure = call("unsure", 1);
  Node* unknown = call("unknown", 2);
  live.follow();
  CHECK(live.of({sure, 0}) == "p:0 = 1");
  CHECK(live.of({unsure, 0}) == "p:0 = 1, unsure:0 live");
  CHECK(live.of({unknown, 0}) == "p:0 = 1, unknown:0 live");
}

TEST_CASE("liveness: beyond 128 conditions only their node is known") {
  Live live;
  std::vector<Node*> chain;
  for (int i = 0; i < 130; ++i) {
    const std::string name = std::to_string(i);
    Node* p = constant(live.graph, "p" + name, Tensor::scalar(true));
    chain.push_back(live.switch_(
        "s" + name,
        chain.empty() ? Endpoint{live.x, 0} : Endpoint{chain.back(), 1},
        {p, 0}));
  }
  live.follow();
  const auto size_of = [&](const Node* node) {
    return live.liveness->conditions().of(live.liveness->of(*node)).size();
  };
  CHECK(size_of(chain[127]) == 127);
  CHECK(size_of(chain[128]) == 128);
  CHECK(live.text(live.liveness->of(*chain[129])) == "s129:0 live");
  CHECK(live.of({chain[129], 1}) == "s129:0 live, p129:0 = 1");
}
