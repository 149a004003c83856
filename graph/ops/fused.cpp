// What passes make of other ops; graphs from elsewhere need not have it.
#include "graph/op_registry.h"
#include "graph/ops/ops.h"

namespace tagflow::graph {

void register_fused_ops(OpRegistry& registry) {
  // `program` lists element-wise ops in the order in which they are computed,
  // each "Op a" or "Op a b": the numbers count the inputs and then the results
  // so far. The output is the last result, and an error the first, as the ops
  // one by one would give it. `names` are their nodes', for messages.
  registry.add(OpDefBuilder("_FusedElementwise")
                   .input("inputs: N * T")
                   .output("output: T")
                   .attr("N: int >= 1")
                   .attr("T: {half, bfloat16, float, double}")
                   .attr("program: list(string) >= 1")
                   .attr("names: list(string) >= 1"));
}

}  // namespace tagflow::graph
