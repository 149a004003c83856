// Accumulators of gradients, and barriers.
#include "graph/known_value.h"
#include "graph/ops/state_ops.h"

namespace tagflow::graph {

namespace {

constexpr const char* kDtype = "dtype: numbertype";

// The gradient has the accumulator's shape, if that is known.
Status take_gradient_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  c.set_output(0, variable_shape(c, 0));
  return {};
}

Status apply_gradient_shape(ShapeContext& c) {
  return c.with_rank(1, 0).status();
}

Status apply_sparse_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  return c.with_rank(2, 1).status();
}

Status take_sparse_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  c.set_output(0, {-1});
  c.set_output(2, {-1});
  return {};
}

Status insert_many_shape(ShapeContext& c) { return c.with_rank(1, 1).status(); }

Status take_many_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  c.set_output(0, {-1});
  c.set_output(1, {-1});
  return {};
}

void define_accumulator(OpRegistry& registry, const std::string& name,
                        bool is_handle) {
  registry.add(
      OpDefBuilder(name)
          .output(is_handle ? "handle: resource" : "handle: Ref(string)")
          .attr(kDtype)
          .attr("shape: shape")
          .attr("container: string = ''")
          .attr("shared_name: string = ''")
          .attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
          .stateful()
          .shape(is_handle ? scalar_shape : handle_reference_shape));
}

}  // namespace

void register_accumulator_ops(OpRegistry& registry) {
  define_accumulator(registry, "ConditionalAccumulator", false);
  define_accumulator(registry, "SparseConditionalAccumulator", false);
  define_accumulator(registry, "ResourceConditionalAccumulator", true);
  for (const bool is_handle : {false, true}) {
    const std::string start = is_handle ? "ResourceAccumulator" : "Accumulator";
    const char* const handle =
        is_handle ? "handle: resource" : "handle: Ref(string)";
    define_stateful(registry, start + "ApplyGradient",
                    {handle, "local_step: int64", "gradient: dtype"}, {},
                    {kDtype}, apply_gradient_shape);
    define_stateful(registry, start + "TakeGradient",
                    {handle, "num_required: int32"}, {"average: dtype"},
                    {kDtype}, take_gradient_shape);
    define_stateful(registry, start + "NumAccumulated", {handle},
                    {"num_accumulated: int32"}, {}, scalar_shape);
    define_stateful(registry, start + "SetGlobalStep",
                    {handle, "new_global_step: int64"}, {}, {},
                    apply_gradient_shape);
  }
  define_stateful(
      registry, "SparseAccumulatorApplyGradient",
      {"handle: Ref(string)", "local_step: int64", "gradient_indices: int64",
       "gradient_values: dtype", "gradient_shape: int64"},
      {}, {kDtype, "has_known_shape: bool"}, apply_sparse_shape);
  define_stateful(registry, "SparseAccumulatorTakeGradient",
                  {"handle: Ref(string)", "num_required: int32"},
                  {"indices: int64", "values: dtype", "shape: int64"}, {kDtype},
                  take_sparse_shape);
}

void register_barrier_ops(OpRegistry& registry) {
  constexpr const char* kHandle = "handle: Ref(string)";
  define_stateful(registry, "Barrier", {}, {kHandle},
                  {"component_types: list(type) >= 1",
                   "shapes: list(shape) = []", "capacity: int = -1",
                   "container: string = ''", "shared_name: string = ''"},
                  handle_reference_shape);
  define_stateful(registry, "BarrierInsertMany",
                  {kHandle, "keys: string", "values: T"}, {},
                  {"T: type", "component_index: int"}, insert_many_shape);
  define_stateful(
      registry, "BarrierTakeMany", {kHandle, "num_elements: int32"},
      {"indices: int64", "keys: string", "values: component_types"},
      {"component_types: list(type) >= 1", "allow_small_batch: bool = false",
       "wait_for_incomplete: bool = false", "timeout_ms: int = -1"},
      take_many_shape);
  define_stateful(registry, "BarrierClose", {kHandle}, {},
                  {"cancel_pending_enqueues: bool = false"}, no_output_shape);
  for (const char* name : {"BarrierReadySize", "BarrierIncompleteSize"})
    define_stateful(registry, name, {kHandle}, {"size: int32"}, {},
                    scalar_shape);
}

}  // namespace tagflow::graph
