// Summaries: named numbers, as serialized messages.
#include "graph/ops/array_ops.h"
#include "graph/ops/ops.h"

namespace tagflow::graph {
namespace {

Status summary_shape(ShapeContext& c) {
  c.set_output(0, PartialShape::scalar());
  return {};
}

}  // namespace

void register_summary_ops(OpRegistry& registry) {
  define(registry, "ScalarSummary", {"tags: string", "values: T"},
         {"summary: string"}, {"T: realnumbertype"}, summary_shape);
  define(registry, "MergeSummary", {"inputs: N * string"}, {"summary: string"},
         {"N: int >= 1"}, summary_shape);
}

}  // namespace tagflow::graph
