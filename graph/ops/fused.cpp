// What passes make of other ops; graphs from elsewhere need not have it.
#include <cstdlib>

#include "graph/op_registry.h"
#include "graph/ops/ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// "_Fused" and the op's name: the op itself, and what is done to its result.
// Where `has_bias` is set, the first of the `others` is a bias for each of its
// channels, the last dimension. Then comes `program`, which may be empty, with
// its `outputs`, as in _FusedElementwise: there the result is number 0, and the
// other `others` are numbered from 1 on. Where there are several `segments`,
// the result is as many numbers: its channels, `width` to each. Where there is
// `more`, the op's first input is a ConcatV2 of that one and these, along the
// last dimension. `names` are the nodes', for messages: of the ConcatV2 and the
// bias if there are such, before and after the op's, then of the program's.
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
  def.inputs.insert(def.inputs.end(), more.inputs.begin(), more.inputs.end());
  def.outputs = more.outputs;
  def.shape_fn = nullptr;
  def.attrs.insert(def.attrs.end(), more.attrs.begin() + 1, more.attrs.end());
  if (!registry.add(std::move(def)).ok()) std::abort();
}

}  // namespace

void register_fused_ops(OpRegistry& registry) {
  // `program` lists element-wise ops in the order in which they are computed,
  // each "Op a" or "Op a b": the numbers count the inputs and then the results
  // so far. `outputs` are the numbers of results, each once, or, where it is
  // empty, the last one is the output. Where `joined` is not empty, it has an
  // output for each of them, in which they are next to each other along the
  // last dimension, in this order. An error is the first, as the ops one by one
  // would give it. `names` are their nodes', for messages. Where `columns` is
  // not empty, it has two numbers for each input, a first column and a count:
  // of the input's last dimension, the ops see that many columns from the first
  // one on, or, where the count is 0, all of them.
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
  // Note [What is summed] in graph/passes/sums.cpp. `sum` is that value, and
  // the products that were added to it.
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
  // Note [What is packed] in graph/passes/pack.cpp. Of a matrix, or, where
  // `count` is not 0, of so many rows of one that is transposed.
  registry.add(OpDefBuilder("_PackWeights")
                   .input("weights: float")
                   .output("packed: variant")
                   .attr("transposed: bool = false")
                   .attr("first: int >= 0 = 0")
                   .attr("count: int >= 0 = 0")
                   .shape(scalar_shape));
  // A _FusedMatMul of such weights; `weights` is their shape.
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
