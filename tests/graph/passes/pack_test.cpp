#include <doctest/doctest.h>

#include <functional>
#include <numeric>

#include "graph/analysis/loop_shapes.h"
#include "graph/builder/builder.h"
#include "graph/known_value.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Ints = std::vector<int64_t>;
using Strings = std::vector<std::string>;

Output placeholder_of(const Scope& s, const char* name, PartialShape shape,
                      DataType dtype = DataType::kFloat) {
  return ops::placeholder(s.named(name), dtype, std::move(shape));
}

// for (i < 10) h = change(h)
Output loop_of(
    const Scope& s, const char* name, const Output& start,
    const std::function<Output(const Scope&, const Output&)>& change) {
  return while_loop(
      s.named(name),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 10); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), change(in, v[1])};
      },
      {0, start})[1];
}

struct Recurrent {
  Graph graph;
  Scope s{graph};
  Output x = placeholder_of(s, "x", {4, 32});
  Output w = placeholder_of(s, "w", {32, 32});

  // The program after the pass, or none if that left it alone.
  std::optional<Program> packed(const Outputs& results,
                                const Strings& targets = {}) const {
    must(s.status());
    Strings fetches;
    for (const Output& result : results) fetches.push_back(result.name());
    Program program = program_of(graph, fetches, targets);
    must(remove_identities(program, {}));
    must(infer_loop_shapes(program.graph));
    const std::string before = dump(program.graph);
    if (run_pass(pack_weights, program)) {
      CHECK(!run_pass(pack_weights, program));
      return program;
    }
    CHECK(dump(program.graph) == before);
    return {};
  }
  // Of a loop with the product of that.
  bool is_packed(const Output& start, const Output& weights,
                 ops::MatMulAttrs attrs = {}) const {
    return packed({loop_of(s, "loop", start,
                           [&](const Scope& in, const Output& h) {
                             return ops::matmul(in, h, weights, attrs);
                           })})
        .has_value();
  }
};

std::vector<const Node*> nodes_of(const Program& program, std::string_view op) {
  std::vector<const Node*> found;
  for (const Node* node : program.graph.nodes())
    if (node->op() == op) found.push_back(node);
  return found;
}

// Past the Enters.
const Node* outside(const Node* node) {
  while (node->is_enter()) node = node->inputs()[0].node;
  return node;
}

}  // namespace

TEST_CASE("packing: weights that a loop multiplies by are packed before it") {
  Recurrent g;
  const auto program = g.packed(
      {loop_of(g.s, "loop", g.x, [&](const Scope& in, const Output& h) {
        return ops::tanh(in, ops::matmul(in.named("product"), h, g.w));
      })});
  REQUIRE(program);
  CHECK(nodes_of(*program, "MatMul").empty());
  const auto products = nodes_of(*program, "_PackedMatMul");
  REQUIRE(products.size() == 1);
  CHECK(products[0]->output_shape(0) == PartialShape({4, 32}));
  CHECK(must(products[0]->attr<PartialShape>("weights")) ==
        PartialShape({32, 32}));
  CHECK(!must(products[0]->attr<bool>("transpose_b")));
  const auto names = must(products[0]->attr<Strings>("names"));
  REQUIRE(names.size() == 1);
  CHECK(contains(names[0], "product"));
  const Node* enter = products[0]->inputs()[1].node;
  CHECK(enter->is_constant_enter());
  CHECK(enter->output_dtypes()[0] == DataType::kVariant);
  const Node* pack = enter->inputs()[0].node;
  CHECK(pack->op() == "_PackWeights");
  CHECK(pack->inputs()[0].to_string() == "w:0");
  CHECK(must(pack->attr<int64_t>("count")) == 0);
}

TEST_CASE("packing: a variable is packed where it is read before the loop") {
  Recurrent g;
  const Output variable =
      g.s.named("variable")
          .op("VarHandleOp", {},
              {{"dtype", DataType::kFloat}, {"shape", PartialShape({32, 32})}});
  const Output value = g.s.named("value").op("ReadVariableOp", {variable},
                                             {{"dtype", DataType::kFloat}});
  const auto product = [](const Output& by) {
    return [by](const Scope& in, const Output& h) {
      return ops::matmul(in, h, by);
    };
  };
  CHECK(g.packed({loop_of(g.s, "loop", g.x, product(value))}));
  // In the loop it may change.
  CHECK(!g.packed(
      {loop_of(g.s, "reading", g.x, [&](const Scope& in, const Output& h) {
        return ops::matmul(
            in, h,
            in.op("ReadVariableOp", {variable}, {{"dtype", DataType::kFloat}}));
      })}));
}

TEST_CASE("packing: weights pass nested loops, once for all products") {
  Recurrent g;
  const Output result =
      loop_of(g.s, "outer", g.x, [&](const Scope& in, const Output& h) {
        const Output inner =
            loop_of(in, "inner", h, [&](const Scope& deep, const Output& k) {
              const Output first = ops::tanh(deep, ops::matmul(deep, k, g.w));
              return ops::matmul(deep, first, g.w);
            });
        return ops::add(in, inner, ops::matmul(in, inner, g.w));
      });
  const auto program = g.packed({result});
  REQUIRE(program);
  const auto products = nodes_of(*program, "_PackedMatMul");
  const auto packs = nodes_of(*program, "_PackWeights");
  CHECK(products.size() == 3);
  REQUIRE(packs.size() == 1);
  for (const Node* product : products)
    CHECK(outside(product->inputs()[1].node) == packs[0]);
  // From one loop into the next.
  size_t enters = 0;
  for (const Node* node : program->graph.nodes())
    enters +=
        node->is_enter() && node->output_dtypes()[0] == DataType::kVariant;
  CHECK(enters == 2);
}

TEST_CASE("packing: weights of an outer loop are packed in its iterations") {
  Recurrent g;
  const Output result =
      loop_of(g.s, "outer", g.w, [&](const Scope& in, const Output& w) {
        const Output weights = ops::tanh(in.named("weights"), w);
        const Output inner =
            loop_of(in, "inner", w, [&](const Scope& deep, const Output& k) {
              return ops::matmul(deep, k, weights);
            });
        return ops::mul(in, inner, w);
      });
  const auto program = g.packed({result});
  REQUIRE(program);
  const auto packs = nodes_of(*program, "_PackWeights");
  REQUIRE(packs.size() == 1);
  CHECK(contains(packs[0]->inputs()[0].node->name(), "weights"));
}

TEST_CASE("packing: transposed weights are packed apart") {
  Recurrent g;
  const auto program = g.packed(
      {loop_of(g.s, "loop", g.x, [&](const Scope& in, const Output& h) {
        const Output there = ops::matmul(in, h, g.w);
        return ops::matmul(in, there, g.w, {.transpose_b = true});
      })});
  REQUIRE(program);
  const auto packs = nodes_of(*program, "_PackWeights");
  REQUIRE(packs.size() == 2);
  CHECK(must(packs[0]->attr<bool>("transposed")) !=
        must(packs[1]->attr<bool>("transposed")));
  for (const Node* product : nodes_of(*program, "_PackedMatMul"))
    CHECK(must(product->attr<bool>("transpose_b")) ==
          must(outside(product->inputs()[1].node)->attr<bool>("transposed")));
}

TEST_CASE("packing: constants, few or unknown weights stay as they are") {
  {
    Recurrent g;  // as a control: none of what follows
    CHECK(g.is_packed(g.x, g.w));
  }
  {
    Recurrent g;  // known: fuse_layers() packs it
    Tensor weights = Tensor::make(DataType::kFloat, {32, 32});
    for (float& value : weights.mutable_flat<float>()) value = 1;
    CHECK(!g.is_packed(g.x, ops::constant(g.s, weights)));
  }
  {
    Recurrent g;
    const Output x = placeholder_of(g.s, "few", {4, 31});
    CHECK(!g.is_packed(x, placeholder_of(g.s, "v", {31, 31})));
  }
  for (const PartialShape& shape :
       {PartialShape(), PartialShape({32, -1}), PartialShape({-1, -1})}) {
    Recurrent g;
    const Output x = placeholder_of(g.s, "any", {-1, -1});
    CHECK(!g.is_packed(x, placeholder_of(g.s, "v", shape)));
  }
  {
    Recurrent g;
    CHECK(!g.is_packed(g.w, g.w, {.transpose_a = true}));
  }
  {
    Recurrent g;
    const Output x = placeholder_of(g.s, "d", {4, 32}, DataType::kDouble);
    const Output w = placeholder_of(g.s, "v", {32, 32}, DataType::kDouble);
    CHECK(!g.is_packed(x, w));
  }
  {
    Recurrent g;  // no loop
    CHECK(!g.packed({ops::matmul(g.s, g.x, g.w)}));
  }
  {
    Recurrent g;  // on the other side
    CHECK(!g.packed(
        {loop_of(g.s, "loop", g.w, [&](const Scope& in, const Output& h) {
          return ops::matmul(in, g.w, h);
        })}));
  }
  {
    Recurrent g;  // the weights themselves change
    CHECK(!g.packed(
        {loop_of(g.s, "loop", g.w, [&](const Scope& in, const Output& h) {
          return ops::mul(in, h, ops::matmul(in, h, h));
        })}));
  }
}

namespace {

// h = the columns that `part` makes of h * w^T; w is of 96 x 32.
struct Parts : Recurrent {
  using PartFn = std::function<Output(const Scope&, const Output&)>;

  explicit Parts(PartFn part_, bool is_transposed_ = true)
      : part(std::move(part_)), is_transposed(is_transposed_) {
    result = loop_of(s, "loop", x, [&](const Scope& in, const Output& h) {
      return part(in, ops::matmul(in, h, is_transposed ? tall : wide,
                                  {.transpose_b = is_transposed}));
    });
  }
  // The shape of the weights that are left.
  PartialShape weights() const {
    const auto program = packed({result});
    REQUIRE(program);
    const auto products = nodes_of(*program, "_PackedMatMul");
    REQUIRE(products.size() == 1);
    return must(products[0]->attr<PartialShape>("weights"));
  }

  PartFn part;
  bool is_transposed;
  Output tall = placeholder_of(s, "tall", {96, 32});
  Output wide = placeholder_of(s, "wide", {32, 96});
  Output result;
};

Outputs split_v(const Scope& s, const Output& value,
                const std::vector<int>& sizes, int axis = 1) {
  Tensor values = Tensor::make(DataType::kInt32, {int64_t(sizes.size())});
  std::ranges::copy(sizes, values.mutable_data<int32_t>());
  return ops::all_outputs(s.op(
      "SplitV",
      {value, ops::constant(s, values), ops::constant(s, Tensor::scalar(axis))},
      {{"num_split", int64_t(sizes.size())}}));
}

}  // namespace

TEST_CASE("packing: a product of which columns are read packs only these") {
  const Parts g([](const Scope& in, const Output& all) {
    return split_v(in, all, {60, 32, 4})[1];
  });
  const auto program = g.packed({g.result});
  REQUIRE(program);
  CHECK(nodes_of(*program, "SplitV").empty());
  const auto products = nodes_of(*program, "_PackedMatMul");
  const auto packs = nodes_of(*program, "_PackWeights");
  REQUIRE(products.size() == 1);
  REQUIRE(packs.size() == 1);
  CHECK(must(packs[0]->attr<int64_t>("first")) == 60);
  CHECK(must(packs[0]->attr<int64_t>("count")) == 32);
  CHECK(must(packs[0]->attr<bool>("transposed")));
  CHECK(products[0]->output_shape(0) == PartialShape({4, 32}));
  CHECK(must(products[0]->attr<PartialShape>("weights")) ==
        PartialShape({32, 32}));
  // An even Split, and an axis from the end.
  CHECK(Parts([](const Scope& in, const Output& all) {
          return ops::split(in, -1, all, 3)[2];
        }).weights() == PartialShape({32, 32}));
}

TEST_CASE("packing: known weights are cut to the columns that are read") {
  Tensor weights = Tensor::make(DataType::kFloat, {96, 32});
  std::iota(weights.mutable_data<float>(), weights.mutable_data<float>() + 3072,
            0.0f);
  const auto program_with = [&](const Parts::PartFn& part, auto&& weights_of) {
    const Recurrent g;
    const Output w = weights_of(g.s);
    return g.packed(
        {loop_of(g.s, "loop", g.x, [&](const Scope& in, const Output& h) {
          return part(in, ops::matmul(in, h, w, {.transpose_b = true}));
        })});
  };
  const auto second = [](const Scope& in, const Output& all) {
    return split_v(in, all, {60, 32, 4})[1];
  };
  const auto is_cut = [&](const std::optional<Program>& program) {
    REQUIRE(program);
    CHECK(nodes_of(*program, "SplitV").empty());
    CHECK(nodes_of(*program, "_PackedMatMul").empty());
    const auto products = nodes_of(*program, "MatMul");
    REQUIRE(products.size() == 1);
    CHECK(must(products[0]->attr<bool>("transpose_b")));
    CHECK(products[0]->output_shape(0) == PartialShape({4, 32}));
    const Tensor* rows = known_constant(products[0]->inputs()[1]);
    REQUIRE(rows != nullptr);
    CHECK(rows->shape() == Shape({32, 32}));
    CHECK(std::ranges::equal(rows->flat<float>(),
                             weights.flat<float>().subspan(60 * 32, 1024)));
  };
  is_cut(program_with(
      second, [&](const Scope& s) { return ops::constant(s, weights); }));
  // A Const that waits: its rows wait, too.
  const auto waiting = program_with(second, [&](const Scope& s) {
    return ops::constant(
        s.with_control_dependencies({placeholder_of(s, "first", {2})}),
        weights);
  });
  is_cut(waiting);
  CHECK(std::ranges::any_of(nodes_of(*waiting, "Const"), [](const Node* node) {
    return node->output_shape(0) == PartialShape({32, 32}) &&
           std::ranges::any_of(node->control_inputs(), [](const Node* first) {
             return first->name() == "first";
           });
  }));
  // All of it is read: the layer packs it as it is.
  CHECK(!program_with(
      [](const Scope& in, const Output& all) {
        const Outputs parts = ops::split(in, 1, all, 3);
        return ops::add(in, parts[0], parts[2]);
      },
      [&](const Scope& s) { return ops::constant(s, weights); }));
}

TEST_CASE("packing: all columns are packed if not just one split's are read") {
  const PartialShape all = {96, 32};
  // Two of its outputs are read.
  CHECK(Parts([](const Scope& in, const Output& whole) {
          const Outputs parts = ops::split(in, 1, whole, 3);
          return ops::add(in, parts[0], parts[2]);
        }).weights() == all);
  // The product is read besides.
  CHECK(Parts([](const Scope& in, const Output& whole) {
          return ops::add(in, ops::split(in, 1, whole, 3)[0],
                          ops::reduce_sum(in, whole));
        }).weights() == all);
  // Rows.
  CHECK(Parts([](const Scope& in, const Output& whole) {
          const Output rows = ops::split(in, 0, whole, 2)[1];
          return ops::concat(in,
                             {ops::slice(in, rows, {0, 0}, {2, 32}),
                              ops::slice(in, rows, {0, 32}, {2, 32})},
                             0);
        }).weights() == all);
  // Something waits for the split, or it waits.
  CHECK(Parts([](const Scope& in, const Output& whole) {
          const Output part = ops::split(in, 1, whole, 3)[0];
          return ops::neg(in.with_control_dependencies({part}), part);
        }).weights() == all);
  CHECK(Parts([](const Scope& in, const Output& whole) {
          const Output i = ops::constant(in, 1);
          return ops::split(in.with_control_dependencies({i}), 1, whole, 3)[0];
        }).weights() == all);
  // Weights whose columns are in their columns.
  CHECK(
      Parts([](const Scope& in,
               const Output& whole) { return ops::split(in, 1, whole, 3)[0]; },
            false)
          .weights() == PartialShape({32, 96}));
}

TEST_CASE("packing: a split's axis leaves its control inputs behind") {
  Parts g([](const Scope& in, const Output& all) {
    return split_v(in, all, {60, 32, 4})[1];
  });
  Node* split = nullptr;
  for (Node* node : g.graph.nodes())
    if (node->op() == "SplitV") split = node;
  REQUIRE(split != nullptr);
  Node* axis = split->inputs()[2].node;
  REQUIRE(axis->is_const());
  Node* product = split->inputs()[0].node;
  Node* h = product->inputs()[0].node;
  Node* late = add(g.graph, "late", "Tanh", {{h, 0}});
  std::vector<Node*> controls(axis->control_inputs().begin(),
                              axis->control_inputs().end());
  controls.push_back(late);
  g.graph.set_control_inputs(axis, controls);
  const auto program = g.packed({g.result});
  REQUIRE(program);
  const auto products = nodes_of(*program, "_PackedMatMul");
  REQUIRE(products.size() == 1);
  const auto waits = products[0]->control_inputs();
  CHECK(std::ranges::any_of(
      waits, [](const Node* node) { return node->name() == "late"; }));
}

TEST_CASE("packing: a layer is made of packed weights, a bias and a group") {
  Recurrent g;
  const Output w = placeholder_of(g.s, "kernel", {32, 128});
  const Output b = placeholder_of(g.s, "bias", {128});
  const Outputs last = while_loop(
      g.s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 10); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output all = ops::bias_add(in, ops::matmul(in, v[1], w), b);
        const Outputs gates = ops::split(in, 1, all, 4);
        const Output i = ops::sigmoid(in, gates[0]);
        const Output fresh = ops::tanh(in, gates[1]);
        const Output f = ops::sigmoid(in, gates[2]);
        const Output c =
            ops::add(in, ops::mul(in, f, v[2]), ops::mul(in, i, fresh));
        const Output o = ops::sigmoid(in, gates[3]);
        return {ops::add(in, v[0], 1), ops::mul(in, o, ops::tanh(in, c)), c};
      },
      {0, g.x, g.x});
  must(g.s.status());
  Program program = program_of(g.graph, {last[1].name(), last[2].name()});
  must(optimize(program, PassSet(), {}));
  must(group_elementwise(program, {}));
  must(pack_weights(program, {}));
  must(fuse_layers(program, {}));
  must(validate(program.graph));
  for (const char* op :
       {"MatMul", "BiasAdd", "Split", "Sigmoid", "_FusedElementwise"})
    CHECK(nodes_of(program, op).empty());
  const auto layers = nodes_of(program, "_PackedMatMul");
  REQUIRE(layers.size() == 1);
  const Node& layer = *layers[0];
  CHECK(layer.num_inputs() == 4);  // h, weights, bias, c
  CHECK(must(layer.attr<bool>("has_bias")));
  CHECK(must(layer.attr<int64_t>("segments")) == 4);
  CHECK(must(layer.attr<int64_t>("width")) == 32);
  CHECK(layer.num_outputs() == 2);
  for (int i = 0; i < layer.num_outputs(); ++i)
    CHECK(layer.output_shape(i) == PartialShape({4, 32}));
  CHECK(must(layer.attr<Strings>("names")).size() ==
        2 + must(layer.attr<Strings>("program")).size());
  // The results are numbered after the segments and the other operand.
  for (const int64_t output : must(layer.attr<Ints>("outputs")))
    CHECK(output >= 5);
}

TEST_CASE("packing: the sum of two products of a loop is one product") {
  for (const bool transposed : {false, true}) {
    CAPTURE(transposed);
    Recurrent g;
    const Output u = placeholder_of(
        g.s, "u", transposed ? PartialShape{32, 64} : PartialShape{64, 32});
    const Output y = placeholder_of(g.s, "y", {4, 64});
    const ops::MatMulAttrs attrs{.transpose_b = transposed};
    const auto program = g.packed(
        {loop_of(g.s, "loop", g.x, [&](const Scope& in, const Output& h) {
          return ops::tanh(
              in, ops::add(in.named("sum"), ops::matmul(in, h, g.w, attrs),
                           ops::matmul(in, y, u, attrs)));
        })});
    REQUIRE(program);
    CHECK(nodes_of(*program, "MatMul").empty());
    const auto products = nodes_of(*program, "_PackedMatMul");
    REQUIRE(products.size() == 1);
    CHECK(must(products[0]->attr<PartialShape>("weights")) ==
          (transposed ? PartialShape{32, 96} : PartialShape{96, 32}));
    CHECK(must(products[0]->attr<bool>("transpose_b")) == transposed);
    CHECK(products[0]->output_shape(0) == PartialShape({4, 32}));
    // The inputs side by side, in the loop.
    const Node* inputs = products[0]->inputs()[0].node;
    CHECK(inputs->op() == "ConcatV2");
    CHECK(inputs->output_shape(0) == PartialShape({4, 96}));
    // The weights on top of each other, in front of it.
    const Node* packed = outside(products[0]->inputs()[1].node);
    REQUIRE(packed->op() == "_PackWeights");
    const Node* weights = packed->inputs()[0].node;
    REQUIRE(weights->op() == "ConcatV2");
    CHECK(weights->inputs()[0].to_string() == "w:0");
    CHECK(weights->inputs()[1].to_string() == "u:0");
  }
}

TEST_CASE("packing: two products stay if other nodes read them, too") {
  Recurrent g;
  const Output y = placeholder_of(g.s, "y", {4, 32});
  const Output row = placeholder_of(g.s, "row", {1, 32});
  const auto count = [&](const auto& body) {
    const auto program = g.packed({loop_of(g.s, "loop", g.x, body)});
    REQUIRE(program);
    return nodes_of(*program, "_PackedMatMul").size();
  };
  CHECK(count([&](const Scope& in, const Output& h) {
          const Output a = ops::matmul(in, h, g.w), b = ops::matmul(in, y, g.w);
          return ops::mul(in, ops::add(in, a, b), a);
        }) == 2);
  // The one is broadcast.
  CHECK(count([&](const Scope& in, const Output& h) {
          return ops::add(in, ops::matmul(in, h, g.w),
                          ops::matmul(in, row, g.w));
        }) == 2);
  CHECK(count([&](const Scope& in, const Output& h) {
          return ops::add(in, ops::matmul(in, h, g.w),
                          ops::matmul(in, y, g.w, {.transpose_b = true}));
        }) == 2);
  // Widths that do not fit must not make up for each other.
  const Output open = placeholder_of(g.s, "open", {4, -1});
  const Output wide = placeholder_of(g.s, "wide", {4, 32});
  CHECK(count([&](const Scope& in, const Output& h) {
          return ops::tanh(
              in, ops::add(in, ops::matmul(in, open, g.w),
                           ops::matmul(in, ops::add(in, h, wide), g.w)));
        }) == 2);
}
