// Loops that are cut: the invariants of Note [Cut loops] in
// graph/partition/partition.h, by their numbers.
#include <doctest/doctest.h>

#include "graph/node_set.h"
#include "tests/graph/partition/cut.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// for (i = x; i < n; i += 1) with both fed; the names start with "l/".
struct Counting {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* n = placeholder(graph, "n", DataType::kInt32);
  Counter loop = counter(graph, "l", {x, 0}, {n, 0});

  Cut cut(const Places& places, const std::string& fetch = "l/exit") const {
    return {program_of(graph, {fetch}, {}, {"x", "n"}), places, cpus(4)};
  }
};

// This loop around another one, "i/", that negates in every iteration.
struct Nested : Counting {
  Nested() {
    Node* limit = add(graph, "l/n", "Enter", {{n, 0}},
                      {{"frame_name", "l"}, {"is_constant", true}});
    const Counter inner = counter(graph, "i", {loop.body, 0}, {limit, 0});
    Node* neg = add(graph, "i/neg", "Neg", {{inner.body, 0}});
    must(graph.set_input(inner.add, 0, {neg, 0}));
    must(graph.set_input(loop.add, 0, {inner.exit, 0}));
  }
};

Node* constant_enter(Graph& graph, const std::string& name, Node* value,
                     const std::string& frame) {
  return add(graph, name, "Enter", {{value, 0}},
             {{"frame_name", frame}, {"is_constant", true}});
}

}  // namespace

TEST_CASE("1: a token crosses once for all its readers on a device") {
  Counting c;
  Node* twice =
      add(c.graph, "l/twice", "AddV2", {{c.loop.body, 0}, {c.loop.body, 0}});
  must(c.graph.set_input(c.loop.add, 0, {twice, 0}));
  const Cut cut = c.cut({{"l/twice", 1}, {"l/add", 1}, {"l/one", 1}});
  CHECK(cut.count(0, "_Send") == 2);  // the predicate, and l/body
  CHECK(cut.count(1, "_Recv") == 2);
  CHECK(cut.line(1, "l/twice") == "l/twice = AddV2(l/body/recv, l/body/recv)");
  // Its value serves as control edge too.
  CHECK(cut.line(1, "l/one") == "l/one = Const(^l/body/recv)");
}

TEST_CASE("1: a control edge uses what an Identity hands on, if that comes") {
  Counting c;
  must(c.graph.set_input(c.loop.add, 0, {c.loop.branch, 1}));
  const Cut cut = c.cut({{"l/add", 1}, {"l/one", 1}});
  CHECK(cut.count(1, "_Recv") == 2);  // the predicate, and l/switch:1
  CHECK(cut.line(1, "l/one") == "l/one = Const(^l/switch/recv)");
  // What another Switch gives would not do.
  Node* same =
      add(c.graph, "l/same", "Switch", {{c.loop.merge, 0}, {c.loop.cond, 0}});
  must(c.graph.set_input(c.loop.body, 0, {same, 1}));
  const Cut other = c.cut({{"l/add", 1}, {"l/one", 1}});
  CHECK(other.line(1, "l/one") == "l/one = Const(^l/body/control/recv)");
}

TEST_CASE("2: a Recv in a loop is started by the control loop of its device") {
  const Counting c;
  const Cut cut = c.cut({{"l/body", 1}, {"l/one", 1}, {"l/add", 1}});
  const std::string first = "l/enter/control_loop/";
  CHECK(cut.text(1) ==
        "l/body = Identity(l/switch/recv)\n"
        "l/one = Const(^l/body)\n"
        "l/add = AddV2(l/body, l/one)\n"
        "l/add/send = _Send(l/add)\n"
        "l/enter/control_loop/start_1 = Const()\n"
        "l/enter/control_loop/Enter_1 = Enter(l/enter/control_loop/start_1)\n"
        "l/enter/control_loop/Merge_1 = Merge(l/enter/control_loop/Enter_1, "
        "l/enter/control_loop/NextIteration_1)\n"
        "l/cond/recv = _Recv(^l/enter/control_loop/Merge_1)\n"
        "l/enter/control_loop/Switch_1 = Switch("
        "l/enter/control_loop/Merge_1, l/cond/recv)\n"
        "l/enter/control_loop/NextIteration_1 = "
        "NextIteration(l/enter/control_loop/Switch_1:1)\n"
        "l/switch/recv = _Recv(^l/enter/control_loop/Merge_1)\n");
  // The device of the predicate has one too, for what it receives.
  CHECK(cut.line(0, "l/next") == "l/next = NextIteration(l/add/recv)");
  CHECK(cut.line(0, "l/add/recv") == "l/add/recv = _Recv(^" + first + "Merge)");
  CHECK(cut.line(0, first + "Switch") ==
        first + "Switch = Switch(" + first + "Merge, l/cond)");
  const Node& enter = cut.node(1, first + "Enter_1");
  CHECK(text_of(enter, "frame_name") == "l");
  CHECK(must(enter.attr<int64_t>("parallel_iterations")) == 10);
  CHECK(!enter.is_constant_enter());
}

TEST_CASE("2: a device of loop constants only goes around all the same") {
  Counting c;
  Node* twice =
      add(c.graph, "l/twice", "AddV2", {{c.loop.limit, 0}, {c.loop.limit, 0}});
  must(c.graph.set_input(c.loop.less, 1, {twice, 0}));
  for (const uint32_t enter_on : {0, 1}) {
    const Cut cut = c.cut({{"l/twice", 1}, {"l/limit", enter_on}});
    CHECK(cut.count(1, "Enter") == 2);
    CHECK(cut.count(1, "NextIteration") == 1);
    CHECK(contains(cut.line(1, "l/twice"), ", ^l/enter/control_loop/Merge"));
    CHECK(cut.count(1, "_Recv") == 2);  // n, and the predicate
  }
}

// On device 2, the control loop is first asked for by the pivot, which then is
// not needed: device 1 has what it hands on.
TEST_CASE("2: a device goes around though nobody needs its other nodes") {
  Counting c;
  Node* same = add(c.graph, "l/same", "Identity", {{c.loop.limit, 0}});
  must(c.graph.set_input(c.loop.less, 1, {same, 0}));
  Node* pivot = add(c.graph, "l/pivot", "Identity", {{c.loop.branch, 1}});
  Node* two = constant(c.graph, "l/two", Tensor::scalar(2));
  c.graph.add_control_input(two, pivot);
  must(c.graph.set_input(c.loop.add, 1, {two, 0}));
  const Cut cut = c.cut({{"l/body", 1},
                         {"l/add", 1},
                         {"l/two", 1},
                         {"l/limit", 2},
                         {"l/same", 2},
                         {"l/pivot", 2}});
  CHECK(cut.line(1, "l/two") == "l/two = Const(^l/switch/recv)");
  CHECK(cut.count(2, "NextIteration") == 1);
  CHECK(contains(cut.line(2, "l/same"), ", ^l/enter/control_loop/Merge"));
}

TEST_CASE("2: a frame without back edges needs no predicate") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* enter = add(graph, "e", "Enter", {{x, 0}}, {{"frame_name", "once"}});
  Node* limit = constant_enter(graph, "c", x, "once");
  Node* neg = add(graph, "neg", "AddV2", {{enter, 0}, {limit, 0}});
  add(graph, "out", "Exit", {{neg, 0}});
  const Cut cut(program_of(graph, {"out"}, {}, {"x"}), {{"neg", 1}}, cpus(2));
  CHECK(cut.text(1) ==
        "neg = AddV2(e_1, c_1)\n"
        "neg/send = _Send(neg)\n"
        "e_1 = Enter(x/recv)\n"
        "c_1 = Enter*(x/recv)\n"
        "x/recv = _Recv()\n");
  CHECK(cut.text(0) ==
        "x = Placeholder()\n"
        "out = Exit(neg/recv)\n"
        "e/control_loop/start = Const()\n"
        "e/control_loop/Enter = Enter(e/control_loop/start)\n"
        "neg/recv = _Recv(^e/control_loop/Enter)\n"
        "x/send = _Send(x)\n");
}

TEST_CASE("3: all control loops of a frame read its one predicate") {
  const Counting c;
  const Cut cut = c.cut({{"l/body", 1}, {"l/one", 2}, {"l/add", 3}});
  for (const uint32_t device : {1, 2, 3}) {
    CHECK(cut.count(device, "LoopCond") == 0);
    const Graph& graph = cut.on(device).graph;
    size_t predicates = 0;
    for (const Node* node : graph.nodes()) {
      if (!node->is_switch()) continue;
      ++predicates;
      CHECK(text_of(*node->inputs()[1].node, "tensor_name") == "l/cond:0");
    }
    CHECK(predicates == 1);
  }
}

TEST_CASE("3: readers of the predicate share what is sent of it") {
  const Counting c;
  const Cut cut = c.cut({{"l/switch", 1}});
  CHECK(cut.line(1, "l/switch") ==
        "l/switch = Switch(l/merge/recv, l/cond/recv)");
  CHECK(cut.line(1, "l/enter/control_loop/Switch_1") ==
        "l/enter/control_loop/Switch_1 = Switch("
        "l/enter/control_loop/Merge_1, l/cond/recv)");
  CHECK(cut.count(1, "_Recv") == 2);
}

TEST_CASE("3: a loop without a predicate is refused") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = placeholder(graph, "p", DataType::kBool);
  Node* enter = add(graph, "e", "Enter", {{x, 0}}, {{"frame_name", "f"}});
  Node* off = constant_enter(graph, "off", p, "f");
  Node* merge = add(graph, "m", "Merge", {{enter, 0}, {}});
  Node* fork = add(graph, "s", "Switch", {{merge, 0}, {off, 0}});
  Node* neg = add(graph, "neg", "Neg", {{fork, 1}});
  Node* next = add(graph, "next", "NextIteration", {{neg, 0}});
  must(graph.set_input(merge, 1, {next, 0}));
  add(graph, "out", "Exit", {{fork, 0}});
  CHECK(refusal(program_of(graph, {"out"}, {}, {"x", "p"}), {{"neg", 1}},
                cpus(2)) ==
        "[partition] the loop of frame \"f\" has to be on one device: it has "
        "no LoopCond; node \"next\" is on "
        "/job:localhost/replica:0/task:0/device:CPU:0, and reads \"neg\" on "
        "/job:localhost/replica:0/task:0/device:CPU:1");
  // On one device it may be.
  const Cut whole(program_of(graph, {"out"}, {}, {"x", "p"}),
                  {{"x", 0}, {"p", 0}, {"", 1}}, cpus(2));
  CHECK(whole.parts.size() == 1);
}

TEST_CASE("3: a loop without predicate that shares constants is refused") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* enter = add(graph, "e", "Enter", {{x, 0}}, {{"frame_name", "f"}});
  Node* merge = add(graph, "m", "Merge", {{enter, 0}, {}});
  Node* next = add(graph, "next", "NextIteration", {{merge, 0}});
  must(graph.set_input(merge, 1, {next, 0}));
  Node* c = constant_enter(graph, "c", x, "f");
  add(graph, "neg", "Neg", {{c, 0}});
  CHECK(refusal(program_of(graph, {}, {"neg", "m"}, {"x"}), {{"neg", 1}},
                cpus(2)) ==
        "[partition] the loop of frame \"f\" has to be on one device: it has "
        "no LoopCond; node \"neg\" is on "
        "/job:localhost/replica:0/task:0/device:CPU:1, the back edges are "
        "not");
}

TEST_CASE("3: a loop that goes on by another predicate is refused") {
  Counting c;
  Node* p = placeholder(c.graph, "p", DataType::kBool);
  Node* in = constant_enter(c.graph, "l/p", p, "l");
  Node* fork = add(c.graph, "l/fork", "Switch", {{c.loop.add, 0}, {in, 0}});
  must(c.graph.set_input(c.loop.next, 0, {fork, 1}));
  CHECK(refusal(program_of(c.graph, {"l/exit"}, {}, {"x", "n", "p"}),
                {{"l/add", 1}}, cpus(2)) ==
        "[partition] the loop of frame \"l\" has to be on one device: "
        "NextIteration \"l/next\" may be dead if LoopCond \"l/cond\" is "
        "true; that depends on \"p:0\"; node \"l/fork\" is on "
        "/job:localhost/replica:0/task:0/device:CPU:0, and reads \"l/add\" on "
        "/job:localhost/replica:0/task:0/device:CPU:1");
}

TEST_CASE("4: an inner control loop is entered by the outer one") {
  const Nested nested;
  const Cut cut = nested.cut({{"i/neg", 1}});
  CHECK(cut.line(1, "i/enter/control_loop/Enter_1") ==
        "i/enter/control_loop/Enter_1 = Enter(l/enter/control_loop/Merge_1)");
  CHECK(cut.line(1, "l/enter/control_loop/Enter_1") ==
        "l/enter/control_loop/Enter_1 = Enter(l/enter/control_loop/start_1)");
  CHECK(cut.line(1, "i/body/recv") ==
        "i/body/recv = _Recv(^i/enter/control_loop/Merge_1)");
  CHECK(cut.line(1, "l/cond/recv") ==
        "l/cond/recv = _Recv(^l/enter/control_loop/Merge_1)");
}

TEST_CASE("4: a device with nodes of the outer loop only has no inner one") {
  const Nested nested;
  const Cut cut = nested.cut({{"l/add", 1}, {"l/one", 1}, {"i/neg", 2}});
  for (const Node* node : cut.on(1).graph.nodes())
    if (node->is_enter()) CHECK(text_of(*node, "frame_name") == "l");
  CHECK(cut.line(1, "i/exit/recv") ==
        "i/exit/recv = _Recv(^l/enter/control_loop/Merge_1)");
}

TEST_CASE("5: a loop's Merge gets its Enter and NextIteration") {
  const Counting c;
  const Cut cut = c.cut({{"l/merge", 1}});
  CHECK(cut.line(1, "l/merge") == "l/merge = Merge(l/enter_1, l/next_1)");
  CHECK(cut.line(1, "l/next_1") == "l/next_1 = NextIteration(l/add/recv)");
  CHECK(cut.line(1, "l/enter_1") == "l/enter_1 = Enter(x/recv)");
  CHECK(cut.line(1, "x/recv") == "x/recv = _Recv()");
  CHECK(cut.on(0).graph.find("l/next") == nullptr);
  CHECK(cut.on(0).graph.find("l/enter") == nullptr);
}

TEST_CASE("5: Merges on several devices share a NextIteration by copies") {
  Counting c;
  Node* second =
      add(c.graph, "l/second", "Merge", {{c.loop.enter, 0}, {c.loop.next, 0}});
  must(c.graph.set_input(c.loop.less, 0, {second, 0}));
  const Cut cut = c.cut({{"l/second", 1}});
  CHECK(cut.line(0, "l/merge") == "l/merge = Merge(l/enter, l/next)");
  CHECK(cut.line(1, "l/second") == "l/second = Merge(l/enter_1, l/next_1)");
  CHECK(cut.line(1, "l/next_1") == "l/next_1 = NextIteration(l/add/recv)");
}

TEST_CASE("6: a device waits only for predicates to start a Recv") {
  const Nested nested;
  const Cut cut = nested.cut({{"i/neg", 1}, {"i/add", 2}, {"l/add", 3}});
  for (const Partition& part : cut.parts) {
    std::vector<const Node*> waited_for;
    NodeSet seen;
    const auto wait_for = [&](const Node* node) {
      if (seen.insert(*node)) waited_for.push_back(node);
    };
    for (const Node* node : part.program.graph.nodes())
      if (node->op() == "_Recv")
        for (const Node* control : node->control_inputs()) wait_for(control);
    for (size_t i = 0; i < waited_for.size(); ++i) {
      const Node& node = *waited_for[i];
      CAPTURE(node.name());
      const bool is_predicate =
          node.is_loop_cond() ||
          (node.op() == "_Recv" &&
           text_of(node, "tensor_name").ends_with("/cond:0"));
      CHECK((is_predicate || contains(node.name(), "/control_loop/")));
      if (node.is_loop_cond()) continue;
      for (const Endpoint& input : node.inputs()) wait_for(input.node);
      for (const Node* control : node.control_inputs()) wait_for(control);
    }
    CHECK(waited_for.size() > 4);
  }
}

TEST_CASE("a constant of a loop is sent once, from outside") {
  const Counting c;
  const Cut cut = c.cut({{"l/less", 1}});
  CHECK(cut.line(1, "l/less") == "l/less = Less(l/merge/recv, l/limit_1)");
  CHECK(cut.line(1, "l/limit_1") == "l/limit_1 = Enter*(n/recv)");
  CHECK(cut.line(1, "n/recv") == "n/recv = _Recv()");
}

TEST_CASE("a constant of nested loops is sent once for all of them") {
  const Nested nested;
  const Cut cut = nested.cut({{"i/less", 1}});
  CHECK(cut.line(1, "i/less") == "i/less = Less(i/merge/recv, i/limit_1)");
  CHECK(cut.line(1, "i/limit_1") ==
        "i/limit_1 = Enter*(l/n_1, ^l/enter/control_loop/Merge_1)");
  CHECK(cut.line(1, "l/n_1") == "l/n_1 = Enter*(n/recv)");
}

TEST_CASE("a control edge out of an Enter reaches other devices") {
  Counting c;
  Node* neg =
      add(c.graph, "l/neg", "Neg", {{c.loop.body, 0}}, {}, {c.loop.limit});
  must(c.graph.set_input(c.loop.add, 0, {neg, 0}));
  const Cut cut = c.cut({{"l/neg", 1}});
  CHECK(cut.line(1, "l/neg") == "l/neg = Neg(l/body/recv, ^l/limit_1)");
}

TEST_CASE("an Exit elsewhere than its loop is told by the predicate") {
  const Counting c;
  const Cut cut = c.cut({{"l/exit", 1}});
  CHECK(cut.line(1, "l/exit") == "l/exit = Exit(l/switch/recv)");
  CHECK(cut.line(1, "l/switch/recv") ==
        "l/switch/recv = _Recv(^l/enter/control_loop/Merge)");
}
