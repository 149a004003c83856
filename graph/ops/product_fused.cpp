// Products that passes make of other ops; graphs from outside do not need them.
#include <cstdlib>

#include "graph/op_registry.h"
#include "graph/ops/product_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void add_layer(OpRegistry& registry, const std::string& op) {
  OpDef def = *registry.find_or_null(op);
  def.name = "_Fused" + op;
  const OpDef more = OpDefBuilder(def.name)
                         .input("others: N * T")
                         .input("more: S * T")
                         .output("output: M * T")
                         .attr("T: type")
                         .attr("N: int >= 0")
                         .attr("S: int >= 0")
                         .attr("M: int >= 1 = 1")
                         .attr("has_bias: bool")
                         .attr("segments: int >= 1 = 1")
                         .attr("width: int >= 0 = 0")
                         .attr("program: list(string)")
                         .attr("outputs: list(int) = []")
                         .attr("names: list(string) >= 1")
                         .build();
  if (!more.malformed.empty()) {
    fmt::print(stderr, "{}\n", more.malformed);
    std::abort();
  }
  def.inputs.insert(def.inputs.end(), more.inputs.begin(), more.inputs.end());
  def.outputs = more.outputs;
  def.shape_fn = nullptr;
  def.attrs.insert(def.attrs.end(), more.attrs.begin() + 1, more.attrs.end());
  if (!registry.add(std::move(def)).ok()) std::abort();
}

void register_product_fused_ops(OpRegistry& registry) {
  // Note [What is summed] in graph/passes/sums.cpp. `sum` is that value plus
  // the products added to it.
  const auto sums = "T: {float, double}";
  registry.add(OpDefBuilder("_ProductSum")
                   .input("value: T")
                   .output("sum: variant")
                   .attr(sums)
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("_ProductSumAdd")
                   .input("sum: variant")
                   .input("a: T")
                   .input("b: T")
                   .output("output: variant")
                   .attr(sums)
                   .attr("transpose_a: bool = false")
                   .attr("transpose_b: bool = false")
                   .changes_input(0)
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("_ProductSumValue")
                   .input("sum: variant")
                   .output("value: T")
                   .attr(sums));
  for (const char* op : {"MatMul", "BatchMatMulV2"}) add_layer(registry, op);
  // Note [What is packed] in graph/passes/pack.cpp. Packs a matrix or, if
  // `count` is not 0, so many rows of a transposed one.
  registry.add(OpDefBuilder("_PackWeights")
                   .input("weights: float")
                   .output("packed: variant")
                   .attr("transposed: bool = false")
                   .attr("first: int >= 0 = 0")
                   .attr("count: int >= 0 = 0")
                   .shape(scalar_shape));
  // A _FusedMatMul with such weights; `weights` is their shape.
  registry.add(OpDefBuilder("_PackedMatMul")
                   .input("a: T")
                   .input("b: variant")
                   .input("others: N * T")
                   .input("more: S * T")
                   .output("output: M * T")
                   .attr("T: {float}")
                   .attr("transpose_b: bool = false")
                   .attr("weights: shape")
                   .attr("N: int >= 0")
                   .attr("S: int >= 0")
                   .attr("M: int >= 1 = 1")
                   .attr("has_bias: bool = false")
                   .attr("segments: int >= 1 = 1")
                   .attr("width: int >= 0 = 0")
                   .attr("program: list(string) = []")
                   .attr("outputs: list(int) = []")
                   .attr("names: list(string) >= 1")
                   .work(Work::kProduct));
}

}  // namespace tagflow::graph
