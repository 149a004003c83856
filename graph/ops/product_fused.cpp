// Products that passes make of other ops; graphs from outside do not need them.
#include <cstdlib>

#include "graph/op_registry.h"
#include "graph/ops/product_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

void add_layer(OpRegistry& registry, const std::string& op) {
  OpDef def = *registry.find_or_null(op);
  def.name = "_Fused" + op;
  const OpDef more =
      OpDefBuilder(def.name)
          .inputs({"others: N * T", "more: S * T"})
          .output("output: M * T")
          .attrs({"T: type", "N: int >= 0", "S: int >= 0", "M: int >= 1 = 1",
                  "has_bias: bool", "segments: int >= 1 = 1",
                  "width: int >= 0 = 0", "program: list(string)",
                  "outputs: list(int) = []", "names: list(string) >= 1"})
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
                   .inputs({"sum: variant", "a: T", "b: T"})
                   .output("output: variant")
                   .attrs({sums, "transpose_a: bool = false",
                           "transpose_b: bool = false"})
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
                   .attrs({"transposed: bool = false", "first: int >= 0 = 0",
                           "count: int >= 0 = 0"})
                   .shape(scalar_shape));
  // A _FusedMatMul with such weights; `weights` is their shape.
  registry.add(
      OpDefBuilder("_PackedMatMul")
          .inputs({"a: T", "b: variant", "others: N * T", "more: S * T"})
          .output("output: M * T")
          .attrs({"T: {float}", "transpose_b: bool = false", "weights: shape",
                  "N: int >= 0", "S: int >= 0", "M: int >= 1 = 1",
                  "has_bias: bool = false", "segments: int >= 1 = 1",
                  "width: int >= 0 = 0", "program: list(string) = []",
                  "outputs: list(int) = []", "names: list(string) >= 1"})
          .work(Work::kProduct));
}

}  // namespace tagflow::graph
