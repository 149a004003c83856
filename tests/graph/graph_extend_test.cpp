// Graph::extend of graph/graph.h.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/function.h"
#include "graph/graph.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// Counter of hand_made.h as definitions, with every node before its inputs.
std::vector<NodeDef> backwards_counter() {
  const AttrMap frame = {{"frame_name", "loop"}};
  return {
      def("exit", "Exit", {"switch"}),
      def("next", "NextIteration", {"add"}),
      def("add", "AddV2", {"switch:1", "one"}),
      def("one", "Const", {"^switch"},
          {{"value", Tensor::scalar(1)}, {"dtype", DataType::kInt32}}),
      def("switch", "Switch", {"merge", "cond"}),
      def("cond", "LoopCond", {"less"}),
      def("less", "Less", {"merge", "limit"}),
      def("merge", "Merge", {"enter", "next"}),
      def("limit", "Enter", {"nine"},
          {{"frame_name", "loop"}, {"is_constant", true}}),
      def("enter", "Enter", {"zero"}, frame),
      const_def("nine", Tensor::scalar(9)),
      const_def("zero", Tensor::scalar(0)),
  };
}

}  // namespace

TEST_CASE("nodes may come in any order, loops included") {
  Graph graph;
  must(graph.extend(backwards_counter()));
  CHECK(graph.size() == 12);
  const Node* merge = graph.find("merge");
  REQUIRE(merge != nullptr);
  CHECK(merge->inputs()[0].node == graph.find("enter"));
  CHECK(merge->inputs()[1].node == graph.find("next"));
  CHECK(graph.find("add")->inputs()[0] == Endpoint{graph.find("switch"), 1});
}

TEST_CASE("a loop may be given front to back as well") {
  auto defs = backwards_counter();
  std::ranges::reverse(defs);
  Graph graph;
  must(graph.extend(defs));
  for (size_t i = 0; i < defs.size(); ++i)
    CHECK(graph.nodes()[i]->name() == defs[i].name);
}

TEST_CASE("nodes may be added to those that are there") {
  Graph graph;
  must(graph.extend(backwards_counter()));
  must(graph.extend(std::vector{def("more", "Identity", {"exit"})}));
  CHECK(graph.find("more")->inputs()[0].node == graph.find("exit"));
  must(graph.extend(std::vector<NodeDef>()));
  CHECK(graph.size() == 13);
}

TEST_CASE("when one node is refused, none is added") {
  Graph graph;
  must(graph.extend(std::vector{const_def("x", Tensor::scalar(1))}));
  const NodeId next = graph.find("x")->id() + 1;
  auto defs = backwards_counter();
  defs.push_back(def("bad", "AddV2", {"exit", "exit:1"}));
  CHECK(graph.extend(defs).message() ==
        "[AddV2] node \"bad\": input 1 (\"exit:1\"): node \"exit\" (Exit) has "
        "1 output(s)");
  CHECK(graph.size() == 1);
  CHECK(graph.find("merge") == nullptr);
  defs.pop_back();
  must(graph.extend(defs));
  CHECK(graph.nodes()[1]->id() == next);
}

TEST_CASE("a back edge of the wrong type adds nothing") {
  Graph graph;
  auto defs = backwards_counter();
  defs[1] = def("next", "NextIteration", {"less"});
  CHECK(graph.extend(defs).message() ==
        "[Merge] node \"merge\": input 1 (\"next:0\") is bool, int32 is "
        "wanted");
  CHECK(graph.size() == 0);
}

TEST_CASE("a cycle around no back edge is named") {
  Graph graph;
  const std::vector<NodeDef> defs = {
      const_def("x", Tensor::scalar(1)), def("a", "AddV2", {"x", "c"}),
      def("b", "Identity", {"a"}), def("c", "Identity", {"b"}),
      def("d", "Identity", {"c"})};
  CHECK(graph.extend(defs).message() ==
        "[graph] the cycle a -> b -> c -> a does not go through a "
        "NextIteration into a Merge");
  CHECK(graph.size() == 0);
}

TEST_CASE("a cycle of control edges is named, and a long one shortened") {
  Graph graph;
  CHECK(graph.extend(std::vector{def("a", "NoOp", {"^a"})}).message() ==
        "[graph] the cycle a -> a does not go through a NextIteration into a "
        "Merge");
  std::vector<NodeDef> ring;
  for (int i = 0; i < 100; ++i)
    ring.push_back(def("n" + std::to_string(i), "NoOp",
                       {"^n" + std::to_string((i + 99) % 100)}));
  CHECK(contains(graph.extend(ring).message(), "... (100 nodes)"));
}

TEST_CASE("a NextIteration that leads elsewhere than to a Merge is a cycle") {
  Graph graph;
  const std::vector<NodeDef> defs = {
      def("a", "Identity", {"next"}, {{"T", DataType::kInt32}}),
      def("next", "NextIteration", {"a"}, {{"T", DataType::kInt32}})};
  CHECK(contains(graph.extend(defs).message(), "the cycle a -> next -> a"));
}

TEST_CASE("a long chain is added in time that grows with its length") {
  std::vector<NodeDef> chain = {const_def("n0", Tensor::scalar(1))};
  for (int i = 1; i < 20000; ++i)
    chain.push_back(def("n" + std::to_string(i), "Identity",
                        {"n" + std::to_string(i - 1)}));
  std::ranges::reverse(chain);
  Graph graph;
  must(graph.extend(chain));
  CHECK(graph.size() == 20000);
  CHECK(graph.nodes()[0]->name() == "n0");
}

TEST_CASE("all unknown ops are named at once, those of functions too") {
  Graph graph;
  FunctionDef function;
  function.signature = OpDefBuilder("f").build();
  function.nodes = {def("p", "Nooopp", {})};
  must(graph.library().add(function));
  const std::vector<NodeDef> defs = {
      def("a", "Identty", {}), def("b", "NoOp", {}), def("c", "Mull", {})};
  CHECK(graph.extend(defs).to_string() ==
        "Unimplemented: [Identty] node \"a\": [ops] unknown op \"Identty\", "
        "did you mean \"Identity\"?; unknown op \"Mull\", did you mean "
        "\"Mul\"? (node \"c\"); unknown op \"Nooopp\" (node \"p\" of function "
        "\"f\")");
  CHECK(graph.size() == 0);
}

TEST_CASE("a graph may be extended by a graph, functions and loops included") {
  Graph graph;
  Graph loop;
  must(loop.extend(backwards_counter()));
  must(graph.extend(loop));
  CHECK(graph.size() == 12);
  CHECK(graph.find("merge") != loop.find("merge"));
  Graph more;
  FunctionDef f;
  f.signature = OpDefBuilder("F").input("x: int32").build();
  must(more.library().add(f));
  Node* called = constant(more, "called", Tensor::scalar(1));
  add(more, "call", "F", {{called, 0}});
  must(graph.extend(more));
  CHECK(graph.size() == 14);
  CHECK(&graph.find("call")->op_def() == &graph.library().find("F")->signature);
}

TEST_CASE("a graph that is refused leaves no nodes and no functions") {
  Graph graph;
  constant(graph, "c", Tensor::scalar(1));
  FunctionDef f;
  f.signature = OpDefBuilder("F").input("x: int32").build();
  Graph more;
  must(more.library().add(f));
  must(more.library().add_gradient("F", "G"));
  add(more, "before", "NoOp");
  constant(more, "c", Tensor::scalar(2));
  CHECK(message_of(graph.extend(more), Code::kAlreadyExists) ==
        "[Const] node \"c\": a node of this name is there already");
  CHECK(graph.size() == 1);
  CHECK(graph.find("before") == nullptr);
  CHECK(graph.library().empty());
  // Another function of that name may come.
  f.signature = OpDefBuilder("F").input("x: float").build();
  must(graph.library().add(f));
}
