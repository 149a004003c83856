#include "graph/program.h"

#include <doctest/doctest.h>

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

TEST_CASE("a fed tensor comes from a Placeholder of its name") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = add(graph, "y", "Neg", {{x, 0}});
  add(graph, "z", "Neg", {{y, 0}});
  const Program program = program_of(graph, {"z", "y"}, {}, {"y"});
  CHECK(dump(program.graph) ==
        "z = Neg(y)\n"
        "y = Placeholder()\n");
  CHECK(program.feeds[0] == program.fetches[1]);
}

TEST_CASE("a target that is fed runs, and its readers get what is fed") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = add(graph, "p", "Print", {{x, 0}, {x, 0}});
  add(graph, "y", "Neg", {{p, 0}}, {}, {p});
  const Program program = program_of(graph, {"y"}, {"p"}, {"p"});
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "p = Print(x, x)\n"
        "y = Neg(p_1, ^p)\n"
        "p_1 = Placeholder()\n");
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
          "after = NoOp()\n"
          "y = NoOp(^after, ^x)\n"
          "x = Placeholder()\n");
    CHECK(program.targets[0] == program.feeds[0].node);
  }
}

TEST_CASE("nothing waits for a default that is fed") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* d = add(graph, "d", "PlaceholderWithDefault", {{x, 0}},
                {{"shape", PartialShape({})}});
  Node* p = placeholder(graph, "p", DataType::kInt32);
  add(graph, "y", "Neg", {{d, 0}}, {}, {d, p});
  const Program program = program_of(graph, {"y"}, {}, {"d", "p"});
  CHECK(dump(program.graph) ==
        "y = Neg(d, ^p)\n"
        "d = Placeholder()\n"
        "p = Placeholder()\n");
}

TEST_CASE("a tensor that is fed twice is refused") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  const std::vector<Endpoint> feeds = {{x, 0}, {x, 0}};
  CHECK(message_of(extract(graph, feeds, feeds, {}).status(),
                   Code::kInvalidArgument) == "[session] \"x:0\" is fed twice");
}
