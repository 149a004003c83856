// Reads and changes of some rows of a variable: ResourceGather, Scatter*,
// ScatterNd* and their variants for resources.
#include "graph/ops/array_gather.h"
#include "graph/ops/shape_arithmetic.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

namespace {

// params[:batch_dims] + indices[batch_dims:] + params[batch_dims + 1:].
Status resource_gather_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t batch_dims, c.attr<int64_t>("batch_dims"));
  if (batch_dims < 0)
    return c.fail(fmt::format("batch_dims is {}, below 0", batch_dims));
  const PartialShape params = variable_shape(c, 0);
  const PartialShape& indices = c.input(1);
  if (indices.has_rank() && batch_dims > indices.rank())
    return c.fail(
        fmt::format("batch_dims is {}, but indices {} have {} dimensions",
                    batch_dims, indices.to_string(), indices.rank()));
  if (!params.has_rank()) return unknown_shape(c);
  if (params.rank() == 0)
    return c.fail("params must be at least a vector, not a scalar");
  if (params.rank() <= batch_dims)
    return c.fail(
        fmt::format("batch_dims is {}, but params {} have only {} dimensions, "
                    "of which one must be left to gather from",
                    batch_dims, params.to_string(), params.rank()));
  if (!indices.has_rank()) return unknown_shape(c);
  const int batch = int(batch_dims);
  auto merged = sub_shape(params, 0, batch).merge(sub_shape(indices, 0, batch));
  if (!merged.ok())
    return c.fail(
        fmt::format("params {} and indices {} differ in the first "
                    "{} dimensions",
                    params.to_string(), indices.to_string(), batch));
  c.set_output(0, concatenate(concatenate(*merged, sub_shape(indices, batch,
                                                             indices.rank())),
                              sub_shape(params, batch + 1, params.rank())));
  return {};
}

Status resource_gather_nd_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, gathered_slices(c, variable_shape(c, 0)));
  c.set_output(0, std::move(shape));
  return {};
}

// The updates are a row for each index, or one element for all.
Status scatter_shape(ShapeContext& c) {
  PartialShape variable = state_shape(c, 0);
  const PartialShape& indices = c.input(1);
  const PartialShape& updates = c.input(2);
  // For a resource, the update is one row, as in TensorFlow, even if it is a
  // scalar.
  const bool is_resource = c.node().input_dtypes()[0] == DataType::kResource;
  if (variable.has_rank() && variable.rank() < 1 && !is_resource)
    return c.fail("the variable must be at least a vector, not a scalar");
  if (variable.has_rank() && variable.rank() > 0 && indices.has_rank() &&
      !(updates.has_rank() && updates.rank() == 0)) {
    const PartialShape wanted =
        concatenate(indices, sub_shape(variable, 1, variable.rank()));
    if (!wanted.compatible(updates))
      return c.fail(
          fmt::format("updates {} are not a scalar, and should be {} for "
                      "indices {} into {}",
                      updates.to_string(), wanted.to_string(),
                      indices.to_string(), variable.to_string()));
  }
  if (c.num_outputs() > 0) c.set_output(0, std::move(variable));
  return {};
}

Status scatter_slices_shape(ShapeContext& c) {
  PartialShape variable = state_shape(c, 0);
  // The kernel rejects updates of an empty variable; for a handle the kernel
  // checks the shape, since the value may differ from the declared shape.
  const int64_t count = variable.has_rank() ? variable.num_elements() : -1;
  if (count != 0 && c.node().input_dtypes()[0] != DataType::kResource)
    TAGFLOW_RETURN_IF_ERROR(
        check_slice_updates(c, variable, c.input(1), c.input(2)));
  if (c.num_outputs() > 0) c.set_output(0, std::move(variable));
  return {};
}

constexpr const char* kIndexTypes = "Tindices: {int32, int64}";
constexpr const char* kBadIndices = "bad_indices_policy: string = ''";

void register_rows(OpRegistry& registry) {
  constexpr const char* kOrdered =
      "T: {half, bfloat16, float, double, int32, int64}";
  for (const char* what :
       {"Update", "Add", "Sub", "Mul", "Div", "Min", "Max"}) {
    const std::string_view kind = what;
    const bool replaces = kind == "Update";
    const bool orders = kind == "Min" || kind == "Max";
    registry.add(OpDefBuilder(fmt::format("Scatter{}", what))
                     .inputs({"ref: Ref(T)", "indices: Tindices", "updates: T"})
                     .output("output_ref: Ref(T)")
                     .attrs({replaces ? "T: type"
                                      : (orders ? kOrdered : "T: numbertype"),
                             kIndexTypes,
                             replaces ? "use_locking: bool = true"
                                      : "use_locking: bool = false"})
                     .stateful()
                     .shape(scatter_shape));
    registry.add(OpDefBuilder(fmt::format("ResourceScatter{}", what))
                     .inputs({"resource: resource", "indices: Tindices",
                              "updates: dtype"})
                     .attrs({replaces ? "dtype: type" : "dtype: numbertype",
                             kIndexTypes})
                     .stateful()
                     .shape(scatter_shape));
  }
}

void register_slices(OpRegistry& registry) {
  for (const char* what : {"Update", "Add", "Sub", "Min", "Max"}) {
    const bool replaces = std::string_view(what) == "Update";
    registry.add(
        OpDefBuilder(fmt::format("ScatterNd{}", what))
            .inputs({"ref: Ref(T)", "indices: Tindices", "updates: T"})
            .output("output_ref: Ref(T)")
            .attrs({replaces ? "T: type" : "T: numbertype", kIndexTypes,
                    replaces ? "use_locking: bool = true"
                             : "use_locking: bool = false",
                    kBadIndices})
            .stateful()
            .shape(scatter_slices_shape));
    registry.add(
        OpDefBuilder(fmt::format("ResourceScatterNd{}", what))
            .inputs({"ref: resource", "indices: Tindices", "updates: T"})
            .attrs({"T: type", kIndexTypes, "use_locking: bool = true",
                    kBadIndices})
            .stateful()
            .shape(scatter_slices_shape));
  }
}

}  // namespace

void register_variable_scatter_ops(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("ResourceGather")
          .inputs({"resource: resource", "indices: Tindices"})
          .output("output: dtype")
          .attrs({"batch_dims: int = 0", "validate_indices: bool = true",
                  "dtype: type", kIndexTypes})
          .stateful()
          .shape(resource_gather_shape));
  registry.add(OpDefBuilder("ResourceGatherNd")
                   .inputs({"resource: resource", "indices: Tindices"})
                   .output("output: dtype")
                   .attrs({"dtype: type", kIndexTypes})
                   .stateful()
                   .shape(resource_gather_nd_shape));
  register_rows(registry);
  register_slices(registry);
}

}  // namespace tagflow::graph
