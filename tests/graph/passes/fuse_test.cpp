#include <doctest/doctest.h>

#include <algorithm>

#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

const PartialShape kLarge = {100, 100};

struct Elements {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, kLarge);
  Node* y = placeholder(graph, "y", DataType::kFloat, kLarge);
  Node* one = constant(graph, "one", Tensor::scalar(1.0f));

  Node* unary(const char* name, Node* a, std::vector<Node*> control = {},
              const char* op = "Tanh") {
    return add(graph, name, op, {{a, 0}}, {}, std::move(control));
  }
  Node* binary(const char* name, const char* op, Node* a, Node* b) {
    return add(graph, name, op, {{a, 0}, {b, 0}});
  }
};

std::string program_text(const Graph& graph, const std::string& name) {
  using Lines = std::vector<std::string>;
  const Node* node = graph.find(name);
  REQUIRE(node != nullptr);
  const auto names = must(node->attr<Lines>("names"));
  const auto lines = must(node->attr<Lines>("program"));
  REQUIRE(names.size() == lines.size());
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i)
    text += fmt::format("{}: {}\n", names[i], lines[i]);
  return text;
}

}  // namespace

TEST_CASE("fuse: a tree of element-wise ops becomes one node") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* b = g.binary("b", "Mul", a, g.x);
  Node* c = g.binary("c", "Sub", g.y, g.one);
  Node* d = g.binary("d", "AddV2", c, b);
  g.unary("e", d, {}, "Neg");
  Program program = program_of(g.graph, {"e"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "y = Placeholder()\n"
        "one = Const()\n"
        "e_1 = _FusedElementwise(x, y, one)\n");
  CHECK(program_text(program.graph, "e_1") ==
        "a: Tanh 0\n"
        "b: Mul 3 0\n"
        "c: Sub 1 2\n"
        "d: AddV2 5 4\n"
        "e: Neg 6\n");
  CHECK(program.graph.find("e_1")->output_shape(0) == kLarge);
  CHECK(program.fetches[0].to_string() == "e_1:0");
  CHECK(!run_pass(fuse_elementwise, program));
}

TEST_CASE("fuse: a result that is used twice in the tree is part of it") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* b = g.binary("b", "Mul", a, a);
  g.binary("c", "AddV2", a, b);
  Program program = program_of(g.graph, {"c"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(program_text(program.graph, "c_1") ==
        "a: Tanh 0\n"
        "b: Mul 1 1\n"
        "c: AddV2 1 2\n");
}

TEST_CASE("Gradients of activations, and sums of two alike, are fused") {
  Elements g;
  Node* a = g.binary("a", "Mul", g.x, g.y);
  Node* b = g.binary("b", "TanhGrad", g.x, a);
  Node* c = g.binary("c", "AddN", b, g.y);
  Node* d = g.binary("d", "SigmoidGrad", g.y, c);
  g.binary("e", "ReluGrad", d, g.x);
  Program program = program_of(g.graph, {"e"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(program_text(program.graph, "e_1") ==
        "a: Mul 0 1\n"
        "b: TanhGrad 0 2\n"
        "c: AddV2 3 1\n"
        "d: SigmoidGrad 1 4\n"
        "e: ReluGrad 5 0\n");
  // An AddN refuses shapes that an AddV2 takes.
  Graph unknown;
  Node* x = placeholder(unknown, "x", DataType::kFloat, {-1, 100});
  Node* sum = add(unknown, "sum", "AddN", {{x, 0}, {x, 0}});
  add(unknown, "y", "Tanh", {{sum, 0}});
  program = program_of(unknown, {"y"});
  CHECK(!run_pass(fuse_elementwise, program));
}

TEST_CASE("fuse: a node that others need is not inside a tree") {
  Elements g;
  Node* a = g.unary("a", g.x);
  Node* b = g.unary("b", a);  // read by a Shape
  Node* c = g.unary("c", b);  // fetched
  Node* d = g.unary("d", c);  // run
  Node* e = g.unary("e", d);  // waited for
  Node* f = g.unary("f", e);
  g.unary("g", f);
  add(g.graph, "shape", "Shape", {{b, 0}});
  g.unary("h", g.y, {e}, "Abs");
  Program program = program_of(g.graph, {"c", "g", "h", "shape"}, {"d"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "y = Placeholder()\n"
        "c = Tanh(b_1)\n"
        "d = Tanh(c)\n"
        "e = Tanh(d)\n"
        "shape = Shape(b_1)\n"
        "h = Abs(y, ^e)\n"
        "g_1 = _FusedElementwise(e)\n"
        "b_1 = _FusedElementwise(x)\n");
}

TEST_CASE("fuse: a tree keeps its control inputs, and is waited for") {
  Elements g;
  Node* p = placeholder(g.graph, "p", DataType::kFloat, PartialShape::scalar());
  Node* q = placeholder(g.graph, "q", DataType::kFloat, PartialShape::scalar());
  Node* a = g.unary("a", g.x, {p, q});
  Node* b = g.unary("b", a, {q});
  g.unary("c", g.y, {b}, "Abs");
  Program program = program_of(g.graph, {"b", "c"}, {"b"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "y = Placeholder()\n"
        "p = Placeholder()\n"
        "q = Placeholder()\n"
        "c = Abs(y, ^b_1)\n"
        "b_1 = _FusedElementwise(x, ^p, ^q)\n");
  CHECK(program.targets[0]->name() == "b_1");
}

TEST_CASE("fuse: small, broadcast and integer tensors are left alone") {
  Elements g;
  Node* small = placeholder(g.graph, "small", DataType::kFloat, {7});
  g.unary("a", g.unary("b", small));
  Node* row = placeholder(g.graph, "row", DataType::kFloat, {100});
  Node* c = g.binary("c", "AddV2", g.x, row);
  g.binary("d", "Mul", c, row);
  Node* scalar =
      placeholder(g.graph, "s", DataType::kFloat, PartialShape::scalar());
  Node* e = g.unary("e", scalar);
  g.binary("f", "Mul", g.x, e);
  Node* integers = placeholder(g.graph, "i", DataType::kInt32, kLarge);
  Node* h = g.binary("h", "Div", integers, integers);
  g.binary("j", "Div", h, integers);
  g.unary("k", g.unary("l", g.x, {}, "IsNan"), {}, "LogicalNot");
  Program program = program_of(g.graph, {"a", "d", "f", "j", "k"});
  CHECK(!run_pass(fuse_elementwise, program));
}

TEST_CASE("fuse: tensors of unknown or partly known shape are fused") {
  for (const PartialShape& shape :
       {PartialShape(), PartialShape({-1}), PartialShape({-1, 7})}) {
    Graph graph;
    Node* x = placeholder(graph, "x", DataType::kHalf, shape);
    Node* a = add(graph, "a", "Square", {{x, 0}});
    add(graph, "b", "Sqrt", {{a, 0}});
    Program program = program_of(graph, {"b"});
    CHECK(run_pass(fuse_elementwise, program));
    CHECK(program_text(program.graph, "b_1") == "a: Square 0\nb: Sqrt 1\n");
  }
}

TEST_CASE("fuse: a possible scalar is fused only if it is computed once") {
  Graph graph;
  std::vector<Node*> enters;
  for (const PartialShape& shape : {PartialShape(), PartialShape({-1})}) {
    Node* x = placeholder(graph, fmt::format("x{}", enters.size()),
                          DataType::kFloat, shape);
    enters.push_back(add(graph, fmt::format("enter{}", enters.size()), "Enter",
                         {{x, 0}}, {{"frame_name", "loop"}}));
  }
  for (Node* source : {graph.find("x0"), enters[0], enters[1]}) {
    Node* a = add(graph, source->name() + "_a", "Square", {{source, 0}});
    add(graph, source->name() + "_b", "Sqrt", {{a, 0}});
  }
  for (const char* name : {"enter0_b", "enter1_b"})
    add(graph, name + std::string("_exit"), "Exit", {{graph.find(name), 0}});
  Program program =
      program_of(graph, {"x0_b", "enter0_b_exit", "enter1_b_exit"});
  program.name = "f";
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph, "x0_b") == "x0_b = Sqrt(x0_a)");
  program.name = "";
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph, "x0_b_1") == "x0_b_1 = _FusedElementwise(x0)");
  CHECK(dump(program.graph, "enter0_b") == "enter0_b = Sqrt(enter0_a)");
  CHECK(dump(program.graph, "enter1_b_1") ==
        "enter1_b_1 = _FusedElementwise(enter1)");
}

TEST_CASE("fuse: a tree has nodes of one device only") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, kLarge);
  std::vector<Endpoint> from = {{x, 0}};
  for (const char* name : {"a", "b", "c", "d"})
    from[0].node = must(graph.add(name, "Tanh", from, {}, {},
                                  name < std::string("c") ? "" : "/cpu:1"));
  Program program = program_of(graph, {"d"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "d_1 = _FusedElementwise(b_1)\n"
        "b_1 = _FusedElementwise(x)\n");
}

TEST_CASE("fuse: a long chain becomes several nodes") {
  Graph graph;
  Node* last = placeholder(graph, "x", DataType::kFloat, kLarge);
  for (int i = 1; i <= 40; ++i)
    last = add(graph, fmt::format("n{}", i), "Neg", {{last, 0}});
  Program program = program_of(graph, {"n40"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "n40_1 = _FusedElementwise(n24_1)\n"
        "n24_1 = _FusedElementwise(n8_1)\n"
        "n8_1 = _FusedElementwise(x)\n");
}

TEST_CASE("fuse: a tree has nodes of one colocation class only") {
  Elements g;
  const auto in_class = [&](Node* node, const char* label) {
    g.graph.set_attr(node, "_class", std::vector<std::string>{label});
    return node;
  };
  Node* a = in_class(g.unary("a", g.x), "loc:@a");
  Node* b = in_class(g.unary("b", a), "loc:@b");
  in_class(g.unary("c", b), "loc:@b");
  Program program = program_of(g.graph, {"c"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph, "c_1") == "c_1 = _FusedElementwise(a)");
  CHECK(must(program.graph.find("c_1")->attr<std::vector<std::string>>(
            "_class")) == std::vector<std::string>{"loc:@b"});
}

TEST_CASE("fuse: tensors of 8 elements or more are fused") {
  for (const int64_t count : {7, 8}) {
    Graph graph;
    Node* x = placeholder(graph, "x", DataType::kFloat, {count});
    Node* a = add(graph, "a", "Tanh", {{x, 0}});
    add(graph, "b", "Neg", {{a, 0}});
    Program program = program_of(graph, {"b"});
    CHECK(run_pass(fuse_elementwise, program) == (count == 8));
  }
}

TEST_CASE("fuse: ops whose shapes may differ are not one tree") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {-1});
  Node* y = placeholder(graph, "y", DataType::kFloat, {5000});
  Node* a = add(graph, "a", "Tanh", {{x, 0}});
  add(graph, "b", "AddV2", {{a, 0}, {y, 0}});
  Program program = program_of(graph, {"b"});
  CHECK(!run_pass(fuse_elementwise, program));
}

TEST_CASE("fuse: a tree has no more ops than fit in a node") {
  Graph graph;
  // Of 31 sums.
  std::vector<Node*> row;
  for (int i = 0; i < 32; ++i)
    row.push_back(
        placeholder(graph, fmt::format("x{}", i), DataType::kFloat, kLarge));
  int number = 0;
  while (row.size() > 1) {
    std::vector<Node*> sums;
    for (size_t i = 0; i < row.size(); i += 2)
      sums.push_back(add(graph, fmt::format("sum{}", number++), "AddV2",
                         {{row[i], 0}, {row[i + 1], 0}}));
    row = sums;
  }
  Program program = program_of(graph, {row[0]->name()});
  CHECK(run_pass(fuse_elementwise, program));
  size_t ops = 0, most = 0;
  for (const Node* node : program.graph.nodes()) {
    if (node->op() == "AddV2") ++ops;
    if (node->op() != "_FusedElementwise") continue;
    const size_t fused =
        must(node->attr<std::vector<std::string>>("program")).size();
    ops += fused;
    most = std::max(most, fused);
  }
  CHECK(ops == 31);
  CHECK(most == 16);
}

namespace {

// The cell of an LSTM.
struct Gates {
  Graph graph;
  Node* whole = placeholder(graph, "whole", DataType::kFloat, {-1, 512});
  Node* state = placeholder(graph, "state", DataType::kFloat, {-1, 128});
  Node* axis = constant(graph, "axis", Tensor::scalar<int32_t>(1));

  Node* split(Node* of, Node* along, int64_t count) {
    return add(graph, "split", "Split", {{along, 0}, {of, 0}},
               {{"num_split", count}});
  }
  Node* unary(const char* name, const char* op, Node* a, int port = 0) {
    return add(graph, name, op, {{a, port}});
  }
};

std::vector<int64_t> columns_of(const Graph& graph, const std::string& name) {
  const Node* node = graph.find(name);
  REQUIRE(node != nullptr);
  return must(node->attr<std::vector<int64_t>>("columns"));
}

}  // namespace

TEST_CASE("fuse: trees take the columns that they need from the whole") {
  Gates g;
  Node* gates = g.split(g.whole, g.axis, 4);
  Node* input = g.unary("input", "Sigmoid", gates, 0);
  Node* fresh = g.unary("fresh", "Tanh", gates, 1);
  Node* forget = g.unary("forget", "Sigmoid", gates, 2);
  Node* kept = add(g.graph, "kept", "Mul", {{forget, 0}, {g.state, 0}});
  Node* added = add(g.graph, "added", "Mul", {{input, 0}, {fresh, 0}});
  add(g.graph, "next", "AddV2", {{kept, 0}, {added, 0}});
  g.unary("output", "Sigmoid", gates, 3);
  Program program = program_of(g.graph, {"next", "output"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph) ==
        "whole = Placeholder()\n"
        "state = Placeholder()\n"
        "output_1 = _FusedElementwise(whole)\n"
        "next_1 = _FusedElementwise(whole, whole, whole, state)\n");
  CHECK(columns_of(program.graph, "output_1") ==
        std::vector<int64_t>{384, 128});
  CHECK(program_text(program.graph, "output_1") == "output: Sigmoid 0\n");
  CHECK(columns_of(program.graph, "next_1") ==
        std::vector<int64_t>{0, 128, 128, 128, 256, 128, 0, 0});
}

TEST_CASE("fuse: a Split stays if others need it, or it makes no columns") {
  const auto stays = [](Gates& g, std::vector<std::string> fetches) {
    Program program = program_of(g.graph, fetches);
    run_pass(fuse_elementwise, program);
    return program.graph.find("split") != nullptr;
  };
  {
    Gates g;  // as a control: none of what follows
    g.unary("a", "Tanh", g.split(g.whole, g.axis, 4), 1);
    CHECK(!stays(g, {"a"}));
  }
  {
    Gates g;  // a reader that is not element-wise
    Node* split = g.split(g.whole, g.axis, 4);
    g.unary("a", "Tanh", split, 1);
    g.unary("b", "Softmax", split, 2);
    CHECK(stays(g, {"a", "b"}));
  }
  {
    Gates g;  // fetched
    g.unary("a", "Tanh", g.split(g.whole, g.axis, 4), 1);
    CHECK(stays(g, {"a", "split:2"}));
  }
  {
    Gates g;  // rows
    Node* rows = placeholder(g.graph, "rows", DataType::kFloat, {512, 512});
    g.unary("a", "Tanh",
            g.split(rows, constant(g.graph, "zero", Tensor::scalar<int32_t>(0)),
                    4));
    CHECK(stays(g, {"a"}));
  }
  {
    Gates g;  // an axis that only the run knows
    Node* axis = placeholder(g.graph, "fed", DataType::kInt32, {});
    g.unary("a", "Tanh", g.split(g.whole, axis, 4));
    CHECK(stays(g, {"a"}));
  }
  {
    Gates g;  // narrow columns
    g.unary("a", "Tanh", g.split(g.whole, g.axis, 64));
    CHECK(stays(g, {"a"}));
  }
  {
    Gates g;  // a width that is not known
    Node* wide = placeholder(g.graph, "wide", DataType::kFloat, {-1, -1});
    g.unary("a", "Tanh", g.split(wide, g.axis, 4));
    CHECK(stays(g, {"a"}));
  }
}

TEST_CASE("fuse: a Split that goes leaves its control inputs to the tree") {
  Gates g;
  Node* before = g.unary("before", "Tanh", g.state);
  Node* axis =
      add(g.graph, "late", "Const", {},
          {{"value", Tensor::scalar<int32_t>(-1)}, {"dtype", DataType::kInt32}},
          {before});
  g.unary("a", "Tanh", g.split(g.whole, axis, 2), 1);
  Program program = program_of(g.graph, {"a"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(dump(program.graph, "a_1") ==
        "a_1 = _FusedElementwise(whole, ^before)");
  CHECK(columns_of(program.graph, "a_1") == std::vector<int64_t>{256, 256});
}
