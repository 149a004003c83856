#include <doctest/doctest.h>

#include "graph/analysis/loop_shapes.h"
#include "tests/graph/hand_made_loops.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

Tensor zeros(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  for (float& value : tensor.mutable_flat<float>()) value = 0;
  return tensor;
}

struct Picture {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {-1, 8, 8, 3});
  Node* w = constant(graph, "w", zeros({1, 1, 3, 2}));
  Node* offset = constant(graph, "offset", zeros({2}));
  Node* y = placeholder(graph, "y", DataType::kFloat, {-1, 8, 8, 2});

  Node* conv(const char* name = "conv", AttrMap attrs = {},
             std::vector<Node*> control = {}) {
    attrs.emplace("strides", Ints{1, 1, 1, 1});
    attrs.emplace("padding", std::string("VALID"));
    return add(graph, name, "Conv2D", {{x, 0}, {w, 0}}, std::move(attrs),
               std::move(control));
  }
  Node* bias(const char* name, Node* a) {
    return add(graph, name, "BiasAdd", {{a, 0}, {offset, 0}});
  }
  Node* unary(const char* name, const char* op, Node* a) {
    return add(graph, name, op, {{a, 0}});
  }
  Node* binary(const char* name, const char* op, Node* a, Node* c) {
    return add(graph, name, op, {{a, 0}, {c, 0}});
  }
};

// "program | names", each joined by "; ".
std::string text_of(const Graph& graph, const std::string& name) {
  const Node* node = graph.find(name);
  REQUIRE(node != nullptr);
  std::string text;
  for (const std::string& line : must(node->attr<Strings>("program")))
    text += (text.empty() ? "" : "; ") + line;
  text += " |";
  for (const std::string& part : must(node->attr<Strings>("names")))
    text += " " + part;
  return text;
}

bool is_left_alone(const Graph& graph,
                   const std::vector<std::string>& fetches) {
  Program program = program_of(graph, fetches);
  return !run_pass(fuse_layers, program);
}

}  // namespace

TEST_CASE("layers: a product, a bias and an element-wise op become one node") {
  Picture g;
  g.unary("relu", "Relu6", g.bias("bias", g.conv()));
  Program program = program_of(g.graph, {"relu"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "w = Const()\n"
        "offset = Const()\n"
        "relu_1 = _FusedConv2D(x, w, offset)\n");
  CHECK(text_of(program.graph, "relu_1") == "Relu6 0 | conv bias relu");
  const Node* made = program.graph.find("relu_1");
  CHECK(must(made->attr<bool>("has_bias")));
  CHECK(must(made->attr<Ints>("strides")) == Ints{1, 1, 1, 1});
  CHECK(made->output_shape(0) == PartialShape({-1, 8, 8, 2}));
  CHECK(program.fetches[0].to_string() == "relu_1:0");
  CHECK(!run_pass(fuse_layers, program));
}

TEST_CASE("layers: each part of a layer may be missing") {
  Picture g;
  g.conv();
  Program program = program_of(g.graph, {"conv"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "conv_1") == "conv_1 = _FusedConv2D(x, w)");
  CHECK(text_of(program.graph, "conv_1") == " | conv");

  Picture h;
  h.binary("sum", "AddV2", h.y, h.conv());
  program = program_of(h.graph, {"sum"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "sum_1") == "sum_1 = _FusedConv2D(x, w, y)");
  CHECK(text_of(program.graph, "sum_1") == "AddV2 1 0 | conv sum");
  CHECK(!must(program.graph.find("sum_1")->attr<bool>("has_bias")));

  // A vector of constants is a bias by another name.
  Picture i;
  i.binary("sum", "AddV2", i.conv(), i.offset);
  program = program_of(i.graph, {"sum"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(must(program.graph.find("sum_1")->attr<bool>("has_bias")));
}

TEST_CASE("layers: a tree that reads two products belongs to the later one") {
  Picture g;
  Node* v = constant(g.graph, "v", zeros({1, 1, 3, 2}));
  Node* first = g.bias("bias1", g.conv("conv1"));
  g.w = v;
  Node* second = g.bias("bias2", g.conv("conv2"));
  Node* one = constant(g.graph, "one", Tensor::scalar(1.0f));
  Node* a = g.binary("a", "Mul", one, first);
  Node* b = g.binary("b", "AddV2", a, second);
  g.unary("c", "Relu", b);
  Program program = program_of(g.graph, {"c"});
  CHECK(run_pass(fuse_elementwise, program));
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph) ==
        "x = Placeholder()\n"
        "w = Const()\n"
        "offset = Const()\n"
        "v = Const()\n"
        "one = Const()\n"
        "c_1_1 = _FusedConv2D(x, v, offset, one, bias1_1)\n"
        "bias1_1 = _FusedConv2D(x, w, offset)\n");
  CHECK(text_of(program.graph, "c_1_1") ==
        "Mul 1 2; AddV2 3 0; Relu 4 | conv2 bias2 a b c");
}

TEST_CASE("layers: matrix products become layers if it is worth it") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {-1, 32});
  Node* w = constant(graph, "w", zeros({32, 32}));
  Node* few = constant(graph, "few", zeros({32, 31}));
  Node* stack = placeholder(graph, "stack", DataType::kFloat, {2, 3, 32});
  Node* a = add(graph, "a", "MatMul", {{x, 0}, {w, 0}});
  add(graph, "ra", "Tanh", {{a, 0}});
  add(graph, "b", "MatMul", {{x, 0}, {few, 0}});
  Node* y = placeholder(graph, "y", DataType::kFloat, {32, 5});
  add(graph, "c", "MatMul", {{y, 0}, {w, 0}}, {{"transpose_a", true}});
  add(graph, "d", "BatchMatMulV2", {{stack, 0}, {w, 0}}, {{"adj_y", true}});
  Node* tall = placeholder(graph, "tall", DataType::kFloat, {2, 32, 3});
  add(graph, "e", "BatchMatMulV2", {{tall, 0}, {w, 0}}, {{"adj_x", true}});
  Node* matrices = constant(graph, "matrices", zeros({2, 32, 32}));
  add(graph, "f", "BatchMatMulV2", {{stack, 0}, {matrices, 0}});
  Program program = program_of(graph, {"ra", "b", "d", "f"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "ra_1") == "ra_1 = _FusedMatMul(x, w)");
  CHECK(dump(program.graph, "b") == "b = MatMul(x, few)");
  CHECK(dump(program.graph, "d_1") == "d_1 = _FusedBatchMatMulV2(stack, w)");
  CHECK(dump(program.graph, "f") == "f = BatchMatMulV2(stack, matrices)");
  CHECK(is_left_alone(graph, {"c", "e"}));
}

TEST_CASE("layers: weights that come into a loop are known there") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {4, 32});
  Node* w = constant(graph, "w", zeros({32, 32}));
  const auto enter = [&](const char* name, Node* node) {
    return add(graph, name, "Enter", {{node, 0}},
               {{"frame_name", "f"}, {"is_constant", true}});
  };
  Node* product = add(graph, "product", "MatMul",
                      {{enter("ex", x), 0}, {enter("ew", w), 0}});
  add(graph, "out", "Exit", {{product, 0}});
  Program program = program_of(graph, {"out"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "product_1") == "product_1 = _FusedMatMul(ex, ew)");
}

TEST_CASE("layers: a product that others read, or of unfit shape, stays") {
  {
    Picture g;  // the product is fetched
    g.unary("relu", "Relu", g.conv());
    Program program = program_of(g.graph, {"relu", "conv"});
    CHECK(run_pass(fuse_layers, program));
    CHECK(dump(program.graph, "relu") == "relu = Relu(conv_1)");
  }
  {
    Picture g;  // the sum is of a larger shape, or one that is not known
    Node* tall = placeholder(g.graph, "tall", DataType::kFloat, {5, 8, 8, 2});
    Node* any = placeholder(g.graph, "any", DataType::kFloat);
    g.binary("a", "AddV2", g.conv("conv1"), tall);
    g.binary("b", "AddV2", g.conv("conv2"), any);
    Node* row = placeholder(g.graph, "row", DataType::kFloat, {-1, 1, 1, 2});
    g.binary("c", "Mul", g.conv("conv3"), row);
    Program program = program_of(g.graph, {"a", "b", "c"});
    CHECK(run_pass(fuse_layers, program));
    CHECK(dump(program.graph, "a") == "a = AddV2(conv1_1, tall)");
    CHECK(dump(program.graph, "b") == "b = AddV2(conv2_1, any)");
    CHECK(dump(program.graph, "c") == "c = Mul(conv3_1, row)");
  }
  {
    Picture g;  // another device, and an op that is not element-wise
    Node* relu = g.unary("relu", "Relu", g.conv());
    g.graph.set_device(relu, "/device:CPU:1");
    Node* other = g.conv("other");
    g.unary("softmax", "Softmax", other);
    Program program = program_of(g.graph, {"relu", "softmax"});
    CHECK(run_pass(fuse_layers, program));
    CHECK(dump(program.graph, "relu") == "relu = Relu(conv_1)");
    CHECK(dump(program.graph, "softmax") == "softmax = Softmax(other_1)");
  }
  {
    Picture g;  // weights that are fed, other types, channels first
    Node* fed = placeholder(g.graph, "fed", DataType::kFloat, {1, 1, 3, 2});
    g.w = fed;
    g.conv();
    CHECK(is_left_alone(g.graph, {"conv"}));
    g.x = placeholder(g.graph, "z", DataType::kDouble, {1, 8, 8, 3});
    g.w = constant(g.graph, "v", Tensor::make(DataType::kDouble, {1, 1, 3, 2}));
    g.conv("conv2");
    CHECK(is_left_alone(g.graph, {"conv2"}));
    Picture h;
    h.x = placeholder(h.graph, "z", DataType::kFloat, {1, 3, 8, 8});
    h.conv("conv", {{"data_format", std::string("NCHW")}});
    CHECK(is_left_alone(h.graph, {"conv"}));
  }
}

TEST_CASE("layers: a node without a result is in no layer") {
  Picture g;
  Node* queue =
      add(g.graph, "queue", "FIFOQueueV2", {},
          {{"component_types", std::vector<DataType>{DataType::kFloat}}});
  add(g.graph, "put", "QueueEnqueueV2", {{queue, 0}, {g.conv(), 0}},
      {{"Tcomponents", std::vector<DataType>{DataType::kFloat}}});
  Program program = program_of(g.graph, {}, {"put"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(text_of(program.graph, "conv_1") == " | conv");
  CHECK(program.graph.find("put")->op() == "QueueEnqueueV2");
}

TEST_CASE("layers: a layer keeps its control inputs, and is waited for") {
  Picture g;
  const auto scalar = [&](const char* name) {
    return placeholder(g.graph, name, DataType::kFloat, PartialShape::scalar());
  };
  Node* p = scalar("p");
  Node* q = scalar("q");
  Node* bias = add(g.graph, "bias", "BiasAdd",
                   {{g.conv("conv", {}, {p}), 0}, {g.offset, 0}}, {}, {q});
  Node* relu = g.unary("relu", "Relu", bias);
  add(g.graph, "late", "Identity", {{g.y, 0}}, {}, {relu});
  Program program = program_of(g.graph, {"late"}, {"relu"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "relu_1") ==
        "relu_1 = _FusedConv2D(x, w, offset, ^p, ^q)");
  CHECK(dump(program.graph, "late") == "late = Identity(y, ^relu_1)");
  CHECK(program.targets[0]->name() == "relu_1");
}

TEST_CASE("layers: what waits for a part of a layer waits for the layer") {
  // Constants that go on lists, see LastWaits.
  Graph graph;
  Lists lists(graph, DataType::kInt32);
  const Endpoint x{placeholder(graph, "x", DataType::kFloat, {4, 32}), 0};
  const auto enter = [&](const char* name, Tensor value) {
    Node* source = constant(graph, name, std::move(value));
    return Endpoint{
        add(graph, std::string(name) + "_in", "Enter", {{source, 0}},
            {{"frame_name", "l"}, {"is_constant", true}}),
        0};
  };
  const Endpoint w = enter("w", zeros({32, 32}));
  const Endpoint offset = enter("offset", zeros({32}));
  const Loop made =
      loop(graph, "l", {lists.empty("first"), lists.empty("second"), x},
           [&](const Values& in) {
             Node* product = add(graph, "product", "MatMul", {in[2], w});
             Node* bias = add(graph, "bias", "BiasAdd", {{product, 0}, offset});
             const auto pushed = [&](const std::string& name,
                                     const Endpoint& list, Node* waits_for) {
               Node* one = number(graph, "after_" + name, 1, {waits_for});
               return lists.push("push_" + name, list, {one, 0});
             };
             return Values{pushed("product", in[0], product),
                           pushed("bias", in[1], bias),
                           {add(graph, "tanh", "Tanh", {{bias, 0}}), 0}};
           });
  Strings fetches;
  for (const Node* exit : made.exits) fetches.push_back(exit->name());
  Program program = program_of(graph, fetches);
  must(infer_loop_shapes(program.graph));
  CHECK(run_pass(fuse_layers, program));
  for (const std::string name : {"after_product", "after_bias"}) {
    CAPTURE(name);
    const auto waits = program.graph.find(name)->control_inputs();
    REQUIRE(waits.size() == 1);
    CHECK(waits[0]->op() == "_FusedMatMul");
  }
}

TEST_CASE("layers: a product takes what a ConcatV2 joins for it alone") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {-1, 12});
  Node* h = placeholder(graph, "h", DataType::kFloat, {-1, 20});
  Node* w = constant(graph, "w", zeros({32, 32}));
  Node* bias = constant(graph, "bias", zeros({32}));
  Node* last = constant(graph, "last", Tensor::scalar(int32_t(1)));
  Node* p = placeholder(graph, "p", DataType::kFloat, PartialShape::scalar());
  const auto join = [&](const std::string& name, std::vector<Endpoint> parts,
                        Node* axis, std::vector<Node*> control = {}) {
    AttrMap attrs = {{"N", int64_t(parts.size())}};
    parts.push_back({axis, 0});
    return add(graph, name, "ConcatV2", parts, std::move(attrs),
               std::move(control));
  };
  const auto product = [&](const std::string& name, Node* a) {
    return add(graph, name, "MatMul", {{a, 0}, {w, 0}});
  };
  const auto fused = [&](const std::string& fetch) {
    Program program = program_of(graph, {fetch});
    CHECK(run_pass(fuse_layers, program));
    return dump(program.graph, fetch + "_1");
  };
  Node* a = product("a", join("join_a", {{x, 0}, {h, 0}}, last, {p}));
  Node* sum = add(graph, "sum", "BiasAdd", {{a, 0}, {bias, 0}});
  add(graph, "out", "Tanh", {{sum, 0}});
  Program program = program_of(graph, {"out"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "out_1") ==
        "out_1 = _FusedMatMul(x, w, bias, h, ^p)");
  CHECK(text_of(program.graph, "out_1") == "Tanh 0 | join_a a sum out");
  const Node* made = program.graph.find("out_1");
  CHECK(must(made->attr<int64_t>("N")) == 1);
  CHECK(must(made->attr<int64_t>("S")) == 1);
  CHECK(program.graph.find("join_a") == nullptr);

  // Another one reads it, or it is fetched.
  Node* shared = join("shared", {{x, 0}, {h, 0}}, last);
  product("b", shared);
  add(graph, "other", "Neg", {{shared, 0}});
  program = program_of(graph, {"b", "other"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "b_1") == "b_1 = _FusedMatMul(shared, w)");
  program = program_of(graph, {"b", "shared"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "b_1") == "b_1 = _FusedMatMul(shared, w)");

  // Rows are joined, or nobody knows what; another device; too many parts.
  Node* rows = placeholder(graph, "rows", DataType::kFloat, {-1, 32});
  Node* first = constant(graph, "first", Tensor::scalar(int32_t(0)));
  product("c", join("join_c", {{rows, 0}, {rows, 0}}, first));
  CHECK(fused("c") == "c_1 = _FusedMatMul(join_c, w)");
  Node* any =
      placeholder(graph, "any", DataType::kInt32, PartialShape::scalar());
  product("d", join("join_d", {{x, 0}, {h, 0}}, any));
  CHECK(fused("d") == "d_1 = _FusedMatMul(join_d, w)");
  Node* elsewhere = join("join_e", {{x, 0}, {h, 0}}, last);
  graph.set_device(elsewhere, "/device:CPU:1");
  product("e", elsewhere);
  CHECK(fused("e") == "e_1 = _FusedMatMul(join_e, w)");
  Node* narrow = placeholder(graph, "narrow", DataType::kFloat, {-1, 1});
  Node* wide = placeholder(graph, "wide", DataType::kFloat, {-1, 16});
  std::vector<Endpoint> many(16, Endpoint{narrow, 0});
  many.push_back({wide, 0});
  product("f", join("join_f", many, last));
  CHECK(fused("f") == "f_1 = _FusedMatMul(join_f, w)");

  // A last dimension by another number.
  Node* behind = constant(graph, "behind", Tensor::scalar(int32_t(-1)));
  product("g", join("join_g", {{x, 0}, {h, 0}}, behind));
  CHECK(fused("g") == "g_1 = _FusedMatMul(x, w, h)");
}

TEST_CASE("layers: a packed product takes the parts of a ConcatV2, too") {
  Graph graph;
  Node* x = placeholder(graph, "x", DataType::kFloat, {-1, 12});
  Node* h = placeholder(graph, "h", DataType::kFloat, {-1, 20});
  Node* w = placeholder(graph, "w", DataType::kFloat, {32, 32});
  Node* last = constant(graph, "last", Tensor::scalar(int32_t(1)));
  Node* packed = add(graph, "packed", "_PackWeights", {{w, 0}});
  Node* join = add(graph, "join", "ConcatV2", {{x, 0}, {h, 0}, {last, 0}},
                   {{"N", int64_t(2)}});
  const auto product = [&](const char* name, Node* a) {
    Node* made = add(graph, name, "_PackedMatMul", {{a, 0}, {packed, 0}},
                     {{"T", DataType::kFloat},
                      {"N", int64_t(0)},
                      {"S", int64_t(0)},
                      {"weights", PartialShape({32, 32})},
                      {"names", Strings{name}}});
    graph.set_output_shape(made, 0, {-1, 32});
  };
  product("a", join);
  Node* whole = placeholder(graph, "whole", DataType::kFloat, {-1, 32});
  product("b", whole);
  Program program = program_of(graph, {"a"});
  CHECK(run_pass(fuse_layers, program));
  CHECK(dump(program.graph, "a_1") == "a_1 = _PackedMatMul(x, packed, h)");
  CHECK(text_of(program.graph, "a_1") == " | join a");
  CHECK(is_left_alone(graph, {"b"}));
  // One that a graph brought, to which something is done already.
  Node* bias = constant(graph, "bias", zeros({32}));
  Node* whole_layer =
      add(graph, "c", "_PackedMatMul", {{whole, 0}, {packed, 0}, {bias, 0}},
          {{"T", DataType::kFloat},
           {"N", int64_t(1)},
           {"S", int64_t(0)},
           {"has_bias", true},
           {"program", Strings{"Tanh 0"}},
           {"weights", PartialShape({32, 32})},
           {"names", Strings{"c", "bias", "tanh"}}});
  graph.set_output_shape(whole_layer, 0, {-1, 32});
  add(graph, "d", "Relu", {{whole_layer, 0}});
  CHECK(is_left_alone(graph, {"d"}));
}
