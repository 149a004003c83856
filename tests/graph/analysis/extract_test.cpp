#include "graph/analysis/extract.h"

#include <doctest/doctest.h>

#include "graph/program.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("a program has what its fetches and targets need, and no more") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* before = add(graph, "before", "NoOp");
  Node* y = add(graph, "y", "Neg", {{x, 0}}, {}, {before});
  add(graph, "z", "Neg", {{y, 0}});
  const Program program = program_of(graph, {"y"}, {"before"});
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "before = NoOp()\n"
        "y = Neg(x, ^before)\n");
  CHECK(program.fetches[0].node == program.graph.find("y"));
  CHECK(program.targets[0] == program.graph.find("before"));
}

TEST_CASE("a program numbers its nodes anew, however many the graph has") {
  Graph graph;
  for (int i = 0; i < 1000; ++i)
    constant(graph, "c" + std::to_string(i), Tensor::scalar(i));
  Node* nine = graph.find("c999");
  Node* one = graph.find("c1");
  add(graph, "neg", "Neg", {{nine, 0}}, {}, {one});
  Program program = program_of(graph, {"neg"});
  CHECK(dump(program.graph) ==
        "c1 = Const()\n"
        "c999 = Const()\n"
        "neg = Neg(c999, ^c1)\n");
  CHECK(program.graph.end_id() == 3);
  for (NodeId id = 0; id < 3; ++id) CHECK(program.graph.node(id)->id() == id);
  program = program_of(graph, {"neg"}, {}, {"c999"});
  CHECK(program.graph.end_id() == 3);
  CHECK(program.feeds[0].node->id() == 0);
}

TEST_CASE("a feed's stand-in has a name that no node of the graph has") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* fork = add(graph, "f", "Split", {{x, 0}, {x, 0}}, {{"num_split", 2}});
  placeholder(graph, "f_1", DataType::kInt32);
  add(graph, "y", "AddV2", {{fork, 0}, {fork, 1}}, {}, {fork});
  const Program program = program_of(graph, {"y"}, {}, {"f", "f:1"});
  CHECK(dump(program.graph) ==
        "f_2 = Placeholder()\n"
        "f_3 = Placeholder()\n"
        "x = Placeholder()\n"
        "f = Split(x, x)\n"
        "y = AddV2(f_2, f_3, ^f)\n");
}

TEST_CASE("a fed tensor comes from a Placeholder of its name") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{y, 0}});
  const Program program = program_of(graph, {"z", "y"}, {}, {"y"});
  CHECK(dump(program.graph) ==
        "y = Placeholder()\n"
        "z = Neg(y)\n");
  CHECK(program.feeds[0] == program.fetches[1]);
}

TEST_CASE("a target that is fed runs, and its readers get what is fed") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = add(graph, "p", "Print", {{x, 0}, {x, 0}});
  add(graph, "y", "Neg", {{p, 0}}, {}, {p});
  const Program program = program_of(graph, {"y"}, {"p"}, {"p"});
  CHECK(dump(program.graph) ==
        "p_1 = Placeholder()\n"
        "x = Placeholder()\n"
        "p = Print(x, x)\n"
        "y = Neg(p_1, ^p)\n");
  CHECK(program.targets[0] == program.graph.find("p"));
  CHECK(program.feeds[0].to_string() == "p_1:0");
}

TEST_CASE("a Placeholder that is fed has run") {
  for (const char* op : {"Placeholder", "PlaceholderV2"}) {
    CAPTURE(op);
    Graph graph;
    Node* x = add(graph, "x", op, {},
                  {{"dtype", DataType::kInt32}, {"shape", PartialShape({})}});
    Node* after = add(graph, "after", "NoOp");
    add(graph, "y", "NoOp", {}, {}, {after, x});
    const Program program = program_of(graph, {}, {"x", "y"}, {"x"});
    CHECK(dump(program.graph) ==
          "x = Placeholder()\n"
          "after = NoOp()\n"
          "y = NoOp(^after, ^x)\n");
    CHECK(program.targets[0] == program.feeds[0].node);
  }
}

TEST_CASE("a feed of a default is not waited for") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* d = add(graph, "d", "PlaceholderWithDefault", {{x, 0}},
                {{"shape", PartialShape({})}});
  Node* p = placeholder(graph, "p", DataType::kInt32);
  add(graph, "y", "Neg", {{d, 0}}, {}, {d, p});
  const Program program = program_of(graph, {"y"}, {}, {"d", "p"});
  CHECK(dump(program.graph) ==
        "d = Placeholder()\n"
        "p = Placeholder()\n"
        "y = Neg(d, ^p)\n");
}

TEST_CASE("a tensor that is fed twice is refused") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  const std::vector<Endpoint> feeds = {{x, 0}, {x, 0}};
  CHECK(message_of(extract(graph, feeds, feeds, {}).status(),
                   Code::kInvalidArgument) == "[session] \"x:0\" is fed twice");
}
