#include <doctest/doctest.h>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

TEST_CASE("nodes that compute the same are one, and so are their readers") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* one = number(graph, "one", 1);
  Node* eins = number(graph, "eins", 1);
  Node* a = add(graph, "a", "AddV2", {{x, 0}, {one, 0}});
  Node* b = add(graph, "b", "AddV2", {{eins, 0}, {x, 0}});
  add(graph, "na", "Neg", {{a, 0}});
  add(graph, "nb", "Neg", {{b, 0}});
  Program program = program_of(graph, {"na", "nb"}, {"b"});
  CHECK(run_pass(share_subexpressions, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "one = Const()\n"
        "a = AddV2(x, one)\n"
        "na = Neg(a)\n");
  CHECK(program.fetches[1].to_string() == "na:0");
  CHECK(program.targets[0]->name() == "a");
  CHECK(!run_pass(share_subexpressions, program));
}

TEST_CASE("other attributes, inputs or control inputs make another node") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat);
  Node* y = placeholder(graph, "y", DataType::kFloat);
  add(graph, "a", "Cast", {{x, 0}}, {{"DstT", DataType::kInt32}});
  add(graph, "b", "Cast", {{x, 0}}, {{"DstT", DataType::kInt64}});
  add(graph, "c", "Cast", {{x, 0}}, {{"DstT", DataType::kInt64}}, {y});
  add(graph, "d", "Sub", {{x, 0}, {y, 0}});
  add(graph, "e", "Sub", {{y, 0}, {x, 0}});
  // Which zero is the larger one depends on the order.
  add(graph, "f", "Maximum", {{x, 0}, {y, 0}});
  add(graph, "g", "Maximum", {{y, 0}, {x, 0}});
  constant(graph, "h", Tensor::scalar(0.0f));
  constant(graph, "i", Tensor::scalar(-0.0f));
  Program program =
      program_of(graph, {"a", "b", "c", "d", "e", "f", "g", "h", "i"});
  CHECK(!run_pass(share_subexpressions, program));
}

TEST_CASE("what has an effect, or moves tokens, is not shared") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* p = placeholder(graph, "p", DataType::kBool, PartialShape::scalar());
  add(graph, "a", "Print", {{x, 0}, {x, 0}});
  add(graph, "b", "Print", {{x, 0}, {x, 0}});
  add(graph, "c", "Switch", {{x, 0}, {p, 0}});
  add(graph, "d", "Switch", {{x, 0}, {p, 0}});
  placeholder(graph, "x2", DataType::kInt32);
  Program program = program_of(graph, {"a", "b", "c", "d:1", "x2"});
  CHECK(!run_pass(share_subexpressions, program));
}
