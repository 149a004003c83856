// Summaries: named numbers, as serialized messages.
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

Status summary_shape(ShapeContext& c) {
  c.set_output(0, PartialShape::scalar());
  return {};
}

}  // namespace

void register_summary_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("ScalarSummary")
                   .inputs({"tags: string", "values: T"})
                   .output("summary: string")
                   .attr("T: realnumbertype")
                   .shape(summary_shape));
  registry.add(OpDefBuilder("MergeSummary")
                   .input("inputs: N * string")
                   .output("summary: string")
                   .attr("N: int >= 1")
                   .shape(summary_shape));
}

}  // namespace tagflow::graph
