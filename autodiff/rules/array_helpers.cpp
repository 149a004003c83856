#include "autodiff/rules/array_helpers.h"

#include "graph/builder/ops_segment.h"
#include "graph/known_value.h"
#include "graph/ops/index_values.h"

namespace tagflow::autodiff {
namespace {

// The product of dimensions [begin, end) of a shape, the bounds being vectors
// of one element.
Output dims_product(const Scope& s, const Output& shape, const Output& begin,
                    const Output& end) {
  const Output dims = s.op("StridedSlice", {shape, begin, end, {1}});
  return ops::reduce_prod(s, dims, 0);
}

// A scalar as a vector.
Output as_vector(const Scope& s, const Output& scalar) {
  return ops::reshape(s, scalar, {1});
}

// The dimensions of a shape from one on.
Output dims_from(const Scope& s, const Output& shape, const graph::Input& at) {
  return ops::strided_slice(s, shape, at, {0}, {1}, {.end_mask = 1});
}

}  // namespace

std::optional<std::vector<int64_t>> known_indices(RuleContext& r, int input) {
  const Tensor* tensor = graph::known_constant(r.input(input).endpoint());
  if (tensor == nullptr) return {};
  const Shape::Dims elements = graph::index_elements(*tensor);
  return std::vector<int64_t>(elements.begin(), elements.end());
}

std::optional<int64_t> known_index(RuleContext& r, int input) {
  const auto known = known_indices(r, input);
  if (!known || known->size() != 1) return {};
  return known->front();
}

Output index_input(RuleContext& r, int input) {
  const DataType dtype = r.input_dtype(input);
  const Output indices = r.input(input);
  if (dtype == DataType::kInt32 || dtype == DataType::kInt64) return indices;
  return ops::cast(r.scope(), indices, DataType::kInt32);
}

Output count_to(const Scope& s, const Output& count) {
  return ops::range(s, 0, count, 1);
}

Output join_rows(const Scope& s, const Outputs& parts) {
  return parts.size() == 1 ? parts[0] : ops::concat(s, parts, 0);
}

Output zero_unless(const Scope& s, const Output& mask, const Output& x) {
  return s.op("Select", {mask, x, ops::zeros_like(s, x)});
}

Output zero_where(const Scope& s, const Output& mask, const Output& x) {
  return s.op("Select", {mask, ops::zeros_like(s, x), x});
}

// Each write stores its number: one that reads another number was overwritten.
Output last_writes(const Scope& s, const Output& places, const Output& shape,
                   const AttrMap& policy) {
  const Output size = ops::shape(s, places);
  const Output numbers = count_to(s, ops::gather(s, size, 0));
  const Output dims = ops::slice(s, shape, {0}, ops::slice(s, size, {1}, {1}));
  const Output written = s.op("TensorScatterUpdate",
                              {ops::fill(s, dims, 0), places, numbers}, policy);
  const Output found = s.op("GatherNd", {written, places}, policy);
  return ops::equal(s, found, numbers);
}

// With the dimensions of each kind merged into one, element [b, o, k, :] of the
// gradient goes to row (b * outer + o) * n + indices[b, k] of params as a
// matrix, with n rows for each b and o.
Output gather_gradient(const Scope& s, const Output& grad,
                       const Output& indices, const Output& shape,
                       const GatherAxes& axes) {
  const Output axis = as_vector(s, axes.axis);
  const Output batch_dims = as_vector(s, axes.batch_dims);
  const Output n = ops::gather(s, shape, axes.axis);
  const Output inner =
      ops::reduce_prod(s, dims_from(s, shape, ops::add(s, axis, 1)), 0);
  const Output start = ops::constant(s, Tensor::vector<int64_t>({0}));
  const Output batch = dims_product(s, shape, start, batch_dims);
  const Output outer = dims_product(s, shape, batch_dims, axis);
  const Output index_shape = ops::shape(s, indices, {DataType::kInt64});
  const Output picked =
      ops::reduce_prod(s, dims_from(s, index_shape, batch_dims), 0);

  const Output runs = ops::mul(s, batch, outer);
  const Output firsts = ops::reshape(s, ops::mul(s, count_to(s, runs), n),
                                     ops::pack(s, {batch, outer, 1}));
  const Output within = ops::reshape(s, ops::cast(s, indices, DataType::kInt64),
                                     ops::pack(s, {batch, 1, picked}));
  const Output rows = ops::reshape(s, ops::add(s, firsts, within), {-1});
  const Output values =
      ops::reshape(s, grad, ops::pack(s, {ops::mul(s, runs, picked), inner}));
  const Output sums =
      ops::unsorted_segment_sum(s, values, rows, ops::mul(s, runs, n));
  return ops::reshape(s, sums, shape);
}

void set_gathered_rows(RuleContext& r) {
  const Scope& s = r.scope();
  const Output indices = index_input(r, 1);
  const PartialShape& known = r.known_input_shape(1);
  if (known.has_rank() && known.rank() == 1)
    return r.set_slices(0, r.grad(), indices);
  const Output shape = r.input_shape(1);
  const Output row =
      dims_from(s, r.output_shape(), as_vector(s, ops::size(s, shape)));
  const Output count = ops::reduce_prod(s, shape, {0}, {.keep_dims = true});
  r.set_slices(0, ops::reshape(s, r.grad(), ops::concat(s, {count, row}, 0)),
               ops::reshape(s, indices, {-1}));
}

void set_gathered_vectors(RuleContext& r, const AttrMap& policy) {
  const Scope& s = r.scope();
  Output indices = index_input(r, 1);
  Output grad = r.grad();
  const PartialShape& known = r.known_input_shape(1);
  if (policy.empty() && known.has_rank() && known.rank() == 2 &&
      known.dim(1) == 1)
    return r.set_slices(0, grad, ops::squeeze(s, indices, {1}));
  // ScatterNd does not take a single slice.
  if (!known.has_rank() || known.rank() < 2) {
    indices = ops::expand_dims(s, indices, 0);
    grad = ops::expand_dims(s, grad, 0);
  }
  const Output shape = r.input_shape(0, indices.dtype());
  r.set(0, s.op("ScatterNd", {indices, grad, shape}, policy));
}

}  // namespace tagflow::autodiff
