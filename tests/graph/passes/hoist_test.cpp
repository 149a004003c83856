#include <doctest/doctest.h>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Node* loop_constant(Graph& graph, std::string name, std::string frame,
                    Endpoint source) {
  return add(graph, std::move(name), "Enter", {source},
             {{"frame_name", std::move(frame)},
              {"is_constant", true},
              {"parallel_iterations", 7}});
}

bool hoist(Program& program) { return run_pass(hoist_invariants, program); }

void expect_nothing_to_hoist(const Graph& graph) {
  Program program = program_of(graph, {"loop/exit"});
  const std::string before = dump(program.graph);
  CHECK(!hoist(program));
  CHECK(dump(program.graph) == before);
}

// Counts from x to x, which is a loop constant, too.
struct Loop {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Counter c = counter(graph, "loop", {x, 0}, {x, 0});
  Node* in_x = loop_constant(graph, "in_x", "loop", {x, 0});
};

}  // namespace

TEST_CASE("hoist: nodes of loop constants alone go in front of the loop") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  Node* y = placeholder(graph, "y", DataType::kInt32);
  const Counter c = counter(graph, "loop", {x, 0}, {x, 0});
  Node* in_x = loop_constant(graph, "in_x", "loop", {x, 0});
  Node* in_y = loop_constant(graph, "in_y", "loop", {y, 0});
  Node* product = add(graph, "product", "Mul", {{in_x, 0}, {in_y, 0}});
  Node* square = add(graph, "square", "Square", {{product, 0}});
  must(graph.set_input(c.less, 1, {square, 0}));
  Program program = program_of(graph, {"loop/exit"});
  CHECK(hoist(program));
  CHECK(dump(program.graph, "loop/less") ==
        "loop/less = Less(loop/merge, square/Enter)");
  CHECK(dump(program.graph, "square/Enter") ==
        "square/Enter = Enter*(square_1)");
  CHECK(dump(program.graph, "square_1") == "square_1 = Square(product_1)");
  CHECK(dump(program.graph, "product_1") == "product_1 = Mul(x, y)");
  const Node* enter = program.graph.find("square/Enter");
  CHECK(must(enter->attr<std::string>("frame_name")) == "loop");
  CHECK(program.graph.find("product") == nullptr);
  CHECK(program.graph.find("in_x") == nullptr);
  CHECK(!hoist(program));
}

TEST_CASE("hoist: nodes in front of the loop keep their constraints") {
  Loop loop;
  const std::vector<std::string> classes = {"loc:@x"};
  Node* square = add(loop.graph, "square", "Square", {{loop.in_x, 0}},
                     {{"_class", classes}});
  loop.graph.set_device(square, "/cpu:1");
  must(loop.graph.set_input(loop.c.less, 1, {square, 0}));
  Program program = program_of(loop.graph, {"loop/exit"});
  CHECK(hoist(program));
  for (const char* name : {"square/Enter", "square_1"}) {
    const Node* node = program.graph.find(name);
    CHECK(node->device() == "/cpu:1");
    CHECK(must(node->attr<std::vector<std::string>>("_class")) == classes);
  }
}

TEST_CASE("hoist: nodes that are guarded or change in an iteration stay") {
  Loop loop;
  auto& [graph, x, c, in_x] = loop;
  Node* guarded = add(graph, "guarded", "Neg", {{in_x, 0}}, {}, {c.body});
  Node* printed = add(graph, "printed", "Print", {{in_x, 0}, {in_x, 0}});
  Node* varies = add(graph, "varies", "Mul", {{c.body, 0}, {printed, 0}});
  Node* sum = add(graph, "sum", "AddV2", {{varies, 0}, {guarded, 0}});
  must(graph.set_input(c.next, 0, {sum, 0}));
  expect_nothing_to_hoist(graph);
}

TEST_CASE("hoist: a node can leave two loops at once") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  const Counter outer = counter(graph, "outer", {x, 0}, {x, 0});
  Node* out_x = loop_constant(graph, "out_x", "outer", {x, 0});
  const Counter inner =
      counter(graph, "inner", {outer.body, 0}, {outer.body, 0});
  Node* in_x = loop_constant(graph, "in_x", "inner", {out_x, 0});
  Node* negated = add(graph, "negated", "Neg", {{in_x, 0}});
  must(graph.set_input(inner.less, 1, {negated, 0}));
  must(graph.set_input(outer.next, 0, {inner.exit, 0}));
  Program program = program_of(graph, {"outer/exit"});
  CHECK(hoist(program));
  CHECK(dump(program.graph, "inner/less") ==
        "inner/less = Less(inner/merge, negated/Enter)");
  CHECK(dump(program.graph, "negated/Enter") ==
        "negated/Enter = Enter*(negated_1/Enter)");
  CHECK(dump(program.graph, "negated_1/Enter") ==
        "negated_1/Enter = Enter*(negated_1_1)");
  CHECK(dump(program.graph, "negated_1_1") == "negated_1_1 = Neg(x)");
}

TEST_CASE("hoist: a constant that waits for loop constants goes along") {
  Loop loop;
  auto& [graph, x, c, in_x] = loop;
  Node* two = number(graph, "two", 2, {in_x});
  Node* twice = add(graph, "twice", "Mul", {{in_x, 0}, {two, 0}});
  must(graph.set_input(c.less, 1, {twice, 0}));
  Program program = program_of(graph, {"loop/exit"});
  CHECK(hoist(program));
  CHECK(dump(program.graph, "twice_1") == "twice_1 = Mul(x, two_1)");
  CHECK(dump(program.graph, "two_1") == "two_1 = Const(^x)");
}

TEST_CASE("hoist: a chain of constants of any length goes along") {
  Loop loop;
  auto& [graph, x, c, in_x] = loop;
  Node* last = in_x;
  for (int i = 0; i < 50'000; ++i)
    last = number(graph, fmt::format("c{}", i), i, {last});
  Node* negated = add(graph, "negated", "Neg", {{in_x, 0}}, {}, {last});
  must(graph.set_input(c.less, 1, {negated, 0}));
  Program program = program_of(graph, {"loop/exit"});
  CHECK(hoist(program));
  CHECK(dump(program.graph, "negated_1") == "negated_1 = Neg(x, ^x)");
  CHECK(program.graph.find("c0") == nullptr);
  CHECK(program.graph.find("c0_1") == nullptr);
}

TEST_CASE("hoist: a node waits for a bounded number of constants") {
  Loop loop;
  auto& [graph, x, c, in_x] = loop;
  Node* last = in_x;
  for (int i = 0; i < 100; ++i) {
    Node* y = placeholder(graph, fmt::format("y{}", i), DataType::kInt32);
    Node* in_y = loop_constant(graph, fmt::format("in_y{}", i), "loop", {y, 0});
    last = number(graph, fmt::format("c{}", i), i, {last, in_y});
  }
  Node* negated = add(graph, "negated", "Neg", {{in_x, 0}}, {}, {last});
  must(graph.set_input(c.less, 1, {negated, 0}));
  Program program = program_of(graph, {"loop/exit"});
  CHECK(hoist(program));
  CHECK(program.graph.find("in_y99") == nullptr);
  for (const Node* node : program.graph.nodes())
    CHECK(node->control_inputs().size() <= 18);
}

TEST_CASE("hoist: a constant stays if no other node leaves the loop") {
  Loop loop;
  auto& [graph, x, c, in_x] = loop;
  Node* two = number(graph, "two", 2, {in_x});
  Node* sum = add(graph, "sum", "AddV2", {{c.body, 0}, {two, 0}});
  must(graph.set_input(c.next, 0, {sum, 0}));
  expect_nothing_to_hoist(graph);
}

TEST_CASE("hoist: a constant can leave two loops, with its reader") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  const Counter outer = counter(graph, "outer", {x, 0}, {x, 0});
  Node* out_x = loop_constant(graph, "out_x", "outer", {x, 0});
  const Counter inner =
      counter(graph, "inner", {outer.body, 0}, {outer.body, 0});
  Node* in_x = loop_constant(graph, "in_x", "inner", {out_x, 0});
  Node* two = number(graph, "two", 2, {in_x});
  Node* product = add(graph, "product", "Mul", {{in_x, 0}, {two, 0}});
  must(graph.set_input(inner.less, 1, {product, 0}));
  must(graph.set_input(outer.next, 0, {inner.exit, 0}));
  Program program = program_of(graph, {"outer/exit"});
  CHECK(hoist(program));
  CHECK(dump(program.graph, "product_1_1") == "product_1_1 = Mul(x, two_1_1)");
  CHECK(dump(program.graph, "two_1_1") == "two_1_1 = Const(^x)");
  CHECK(program.graph.find("two_1") == nullptr);
}

TEST_CASE("hoist: a node that reads a reference stays") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kInt32);
  counter(graph, "loop", {x, 0}, {x, 0});
  Node* stack =
      add(graph, "stack", "Stack", {}, {{"elem_type", DataType::kInt32}});
  Node* in = loop_constant(graph, "in", "loop", {stack, 0});
  Node* upper = add(graph, "upper", "StringUpper", {{in, 0}});
  add(graph, "out", "Exit", {{upper, 0}});
  Program program = program_of(graph, {"loop/exit", "out"});
  CHECK(!hoist(program));
  CHECK(dump(program.graph, "upper") == "upper = StringUpper(in)");
}
