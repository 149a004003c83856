#include "graph/ops/array_ops.h"
#include "graph/ops/ops.h"

namespace tagflow::graph {

void define(OpRegistry& registry, std::string name, Texts inputs, Texts outputs,
            Texts attrs, ShapeFn shape_fn, Work work) {
  OpDefBuilder builder(std::move(name));
  for (std::string_view text : inputs) builder.input(text);
  for (std::string_view text : outputs) builder.output(text);
  for (std::string_view text : attrs) builder.attr(text);
  builder.shape(std::move(shape_fn)).work(work);
  registry.add(std::move(builder));
}

void register_array_ops(OpRegistry& registry) {
  register_array_basic_ops(registry);
  register_array_join_ops(registry);
  register_array_slice_ops(registry);
  register_array_gather_ops(registry);
  register_array_layout_ops(registry);
  register_array_diag_ops(registry);
  register_array_indices_ops(registry);
  register_array_update_ops(registry);
}

}  // namespace tagflow::graph
