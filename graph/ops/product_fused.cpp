// Ops that passes make of other ops; graphs from outside do not need them.
#include <cstdlib>

#include "graph/op_registry.h"
#include "graph/ops/product_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// "_Fused" and the op's name: the op with further ops on its result. If
// `has_bias` is set, the first of the `others` is a bias for each of its
// channels, the last dimension. Then follows `program`, which may be empty,
// with its `outputs`, as in _FusedElementwise: the result has number 0, and the
// other `others` are numbered from 1. If there are several `segments`, the
// result has as many numbers: each is `width` of its channels. If `more` is not
// empty, the op's first input is a ConcatV2 of that one and these, along the
// last dimension. `names` are the nodes' names, for messages: the ConcatV2 and
// the bias, if they exist, before and after the op, then those of the program.
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

}  // namespace

void register_product_fused_ops(OpRegistry& registry) {
  // `program` lists element-wise ops in topological order, each "Op a" or
  // "Op a b": the numbers count the inputs and then the previous results.
  // `outputs` are the numbers of results, each once; if it is empty, the last
  // one is the output. If `joined` is not empty, it has an output number for
  // each of them: results with the same number are concatenated along the last
  // dimension, in this order. Errors are the same as for the single ops in
  // sequence. `names` are the names of their nodes, for messages. If `columns`
  // is not empty, it has two numbers for each input, a first column and a
  // count: the ops read that many columns of the input's last dimension from
  // the first one on, or all of them if the count is 0.
  registry.add(OpDefBuilder("_FusedElementwise")
                   .input("inputs: N * T")
                   .output("output: M * T")
                   .attr("N: int >= 1")
                   .attr("M: int >= 1 = 1")
                   .attr("outputs: list(int) = []")
                   .attr("joined: list(int) = []")
                   .attr("T: {half, bfloat16, float, double}")
                   .attr("program: list(string) >= 1")
                   .attr("names: list(string) >= 1")
                   .attr("columns: list(int) = []"));
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
  for (const char* op :
       {"Conv2D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2"})
    add_layer(registry, op);
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
