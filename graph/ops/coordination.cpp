// Accumulators of gradients, barriers and mutexes.
#include "graph/known_value.h"
#include "graph/op_registry.h"
#include "graph/ops/coordination_ops.h"
#include "graph/ops/variable_ops.h"

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

void add_accumulator(OpRegistry& registry, const std::string& name,
                     bool is_handle) {
  registry.add(
      OpDefBuilder(name)
          .output(is_handle ? "handle: resource" : "handle: Ref(string)")
          .attrs({kDtype, "shape: shape", "container: string = ''",
                  "shared_name: string = ''",
                  "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"})
          .stateful()
          .shape(is_handle ? scalar_shape : handle_reference_shape));
}

void register_accumulators(OpRegistry& registry) {
  add_accumulator(registry, "ConditionalAccumulator", false);
  add_accumulator(registry, "SparseConditionalAccumulator", false);
  add_accumulator(registry, "ResourceConditionalAccumulator", true);
  for (const bool is_handle : {false, true}) {
    const std::string start = is_handle ? "ResourceAccumulator" : "Accumulator";
    const char* const handle =
        is_handle ? "handle: resource" : "handle: Ref(string)";
    registry.add(OpDefBuilder(start + "ApplyGradient")
                     .inputs({handle, "local_step: int64", "gradient: dtype"})
                     .attr(kDtype)
                     .stateful()
                     .shape(apply_gradient_shape));
    registry.add(OpDefBuilder(start + "TakeGradient")
                     .inputs({handle, "num_required: int32"})
                     .output("average: dtype")
                     .attr(kDtype)
                     .stateful()
                     .shape(take_gradient_shape));
    registry.add(OpDefBuilder(start + "NumAccumulated")
                     .input(handle)
                     .output("num_accumulated: int32")
                     .stateful()
                     .shape(scalar_shape));
    registry.add(OpDefBuilder(start + "SetGlobalStep")
                     .inputs({handle, "new_global_step: int64"})
                     .stateful()
                     .shape(apply_gradient_shape));
  }
  registry.add(OpDefBuilder("SparseAccumulatorApplyGradient")
                   .inputs({"handle: Ref(string)", "local_step: int64",
                            "gradient_indices: int64", "gradient_values: dtype",
                            "gradient_shape: int64"})
                   .attrs({kDtype, "has_known_shape: bool"})
                   .stateful()
                   .shape(apply_sparse_shape));
  registry.add(OpDefBuilder("SparseAccumulatorTakeGradient")
                   .inputs({"handle: Ref(string)", "num_required: int32"})
                   .outputs({"indices: int64", "values: dtype", "shape: int64"})
                   .attr(kDtype)
                   .stateful()
                   .shape(take_sparse_shape));
}

void register_barriers(OpRegistry& registry) {
  constexpr const char* kHandle = "handle: Ref(string)";
  registry.add(
      OpDefBuilder("Barrier")
          .output(kHandle)
          .attrs({"component_types: list(type) >= 1",
                  "shapes: list(shape) = []", "capacity: int = -1",
                  "container: string = ''", "shared_name: string = ''"})
          .stateful()
          .shape(handle_reference_shape));
  registry.add(OpDefBuilder("BarrierInsertMany")
                   .inputs({kHandle, "keys: string", "values: T"})
                   .attrs({"T: type", "component_index: int"})
                   .stateful()
                   .shape(insert_many_shape));
  registry.add(
      OpDefBuilder("BarrierTakeMany")
          .inputs({kHandle, "num_elements: int32"})
          .outputs(
              {"indices: int64", "keys: string", "values: component_types"})
          .attrs({"component_types: list(type) >= 1",
                  "allow_small_batch: bool = false",
                  "wait_for_incomplete: bool = false", "timeout_ms: int = -1"})
          .stateful()
          .shape(take_many_shape));
  registry.add(OpDefBuilder("BarrierClose")
                   .input(kHandle)
                   .attr("cancel_pending_enqueues: bool = false")
                   .stateful()
                   .shape(no_output_shape));
  for (const char* name : {"BarrierReadySize", "BarrierIncompleteSize"})
    registry.add(OpDefBuilder(name)
                     .input(kHandle)
                     .output("size: int32")
                     .stateful()
                     .shape(scalar_shape));
}

void register_mutexes(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("MutexV2")
          .output("resource: resource")
          .attrs({"container: string = ''", "shared_name: string = ''"})
          .stateful()
          .shape(scalar_shape));
  registry.add(OpDefBuilder("MutexLock")
                   .input("mutex: resource")
                   .output("mutex_lock: variant")
                   .stateful()
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("ConsumeMutexLock")
                   .input("mutex_lock: variant")
                   .stateful()
                   .shape(no_output_shape));
}

}  // namespace

void register_coordination_ops(OpRegistry& registry) {
  register_accumulators(registry);
  register_barriers(registry);
  register_mutexes(registry);
  register_coordination_staging_ops(registry);
}

}  // namespace tagflow::graph
