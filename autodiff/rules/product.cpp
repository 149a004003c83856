// Products of matrices.
#include "autodiff/rule.h"
#include "autodiff/rules/broadcast.h"
#include "autodiff/rules/forward.h"
#include "autodiff/rules/no_gradient.h"
#include "autodiff/rules/product_einsum.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_product.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// Which factor of a product is read transposed.
struct Transposes {
  bool x, y;
};

// The gradient of x or y, from the other factor; multiply(a, transposed, b,
// transposed) is the product.
template <class Multiply>
Output gradient_of_left(RuleContext& r, Transposes t, const Output& y,
                        Multiply multiply) {
  return t.x ? multiply(y, t.y, r.grad(), true)
             : multiply(r.grad(), false, y, !t.y);
}
template <class Multiply>
Output gradient_of_right(RuleContext& r, Transposes t, const Output& x,
                         Multiply multiply) {
  return t.y ? multiply(r.grad(), true, x, t.x)
             : multiply(x, !t.x, r.grad(), false);
}

// A transposed factor is not conjugated.
void matmul_rule(RuleContext& r) {
  const Transposes t = {r.attr<bool>("transpose_a"),
                        r.attr<bool>("transpose_b")};
  const auto multiply = [&](const Output& a, bool transpose_a, const Output& b,
                            bool transpose_b) {
    return ops::matmul(r.scope(), a, b, {transpose_a, transpose_b});
  };
  if (r.wants(0))
    r.set(0, gradient_of_left(r, t, r.conj(r.input(1)), multiply));
  if (r.wants(1))
    r.set(1, gradient_of_right(r, t, r.conj(r.input(0)), multiply));
}

// A transposed factor is conjugated, too.
void batch_matmul_rule(RuleContext& r) {
  const Transposes t = {r.attr<bool>("adj_x"), r.attr<bool>("adj_y")};
  // The types of the factors and of the product may differ in V3.
  const bool is_mixed = r.node().op() == "BatchMatMulV3";
  DataType result = DataType::kInvalid;
  const auto multiply = [&](const Output& a, bool adjoint_a, const Output& b,
                            bool adjoint_b) -> Output {
    AttrMap attrs = {{"adj_x", adjoint_a}, {"adj_y", adjoint_b}};
    if (is_mixed) attrs.emplace("Tout", result);
    return r.scope().op(is_mixed ? "BatchMatMulV3" : "BatchMatMulV2", {a, b},
                        std::move(attrs));
  };
  if (r.wants(0)) {
    result = r.input_dtype(0);
    set_batch_broadcast(r, 0, gradient_of_left(r, t, r.input(1), multiply));
  }
  if (r.wants(1)) {
    result = r.input_dtype(1);
    set_batch_broadcast(r, 1, gradient_of_right(r, t, r.input(0), multiply));
  }
}

}  // namespace

void add_product_rules(RuleTable& table) {
  table.add("MatMul", matmul_rule);
  table.add({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"},
            batch_matmul_rule);
  table.add("Einsum", einsum_rule);
  table.add(
      {"_FusedBatchMatMulV2", "_FusedMatMul", "_PackWeights", "_PackedMatMul",
       "_ProductSum", "_ProductSumAdd", "_ProductSumValue"},
      fused_rule);
  table.add_forward({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"},
                    multilinear<0, 1>);
  table.add_forward({"Einsum"}, [](ForwardContext& r) {
    r.set_multilinear(inputs_from(r, 0));
  });
}

}  // namespace tagflow::autodiff
