// Ops on sparse tensors, each of which is three dense ones: indices, values and
// a shape; and on ragged tensors: row splits and values.
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"
#include "graph/ops/sparse_ops.h"

namespace tagflow::graph {

namespace {

constexpr const char* kSplits = "Tsplits: {int32, int64} = int64";

// A sparse tensor among the inputs.
struct Ports {
  int indices = 0, values = 1, shape = 2;
};

// The known properties of a sparse tensor.
struct Sparse {
  int64_t count = kUnknown, rank = kUnknown;
  PartialShape shape;  // the value of its shape
};

Result<int64_t> same_dim(const ShapeContext& c, int64_t a, int64_t b,
                         std::string_view what) {
  if (a == kUnknown) return b;
  if (b == kUnknown || a == b) return a;
  return c.fail(fmt::format("{}: {} is not {}", what, a, b));
}

Result<Sparse> sparse_input(const ShapeContext& c, Ports ports = {}) {
  Sparse sparse;
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(ports.indices, 2));
  TAGFLOW_ASSIGN(const PartialShape values, c.with_rank(ports.values, 1));
  TAGFLOW_ASSIGN(const PartialShape shape, c.with_rank(ports.shape, 1));
  TAGFLOW_ASSIGN(sparse.count, same_dim(c, indices.dim(0), values.dim(0),
                                        "the numbers of indices and values"));
  TAGFLOW_ASSIGN(sparse.rank, same_dim(c, indices.dim(1), shape.dim(0),
                                       "the ranks of indices and shape"));
  TAGFLOW_ASSIGN(sparse.shape, c.constant_as_shape(ports.shape));
  return sparse;
}

// The three outputs of a sparse tensor from `first` on, `stride` apart.
void set_sparse(ShapeContext& c, int64_t count, int64_t rank, int first = 0,
                int stride = 1) {
  c.set_output(first, {count, rank});
  c.set_output(first + stride, {count});
  c.set_output(first + 2 * stride, {rank});
}

Status sparse_add_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Sparse a, sparse_input(c, {0, 1, 2}));
  TAGFLOW_ASSIGN(const Sparse b, sparse_input(c, {3, 4, 5}));
  TAGFLOW_ASSIGN(const int64_t rank,
                 same_dim(c, a.rank, b.rank, "the ranks of both"));
  if (c.num_inputs() == 7) {  // SparseAdd, which has a third output, the shape
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(6, 0).status());
    set_sparse(c, kUnknown, rank);
    return {};
  }
  c.set_output(0, {kUnknown, rank});
  c.set_output(1, {kUnknown});
  return {};
}

Status sparse_add_grad_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(3, 2).status());
  for (int i = 0; i < 2; ++i) {
    TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(1 + i, 2));
    c.set_output(i, {indices.dim(0)});
  }
  return {};
}

Status sparse_reorder_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Sparse sparse, sparse_input(c));
  c.set_output(0, {sparse.count, sparse.rank});
  c.set_output(1, {sparse.count});
  return {};
}

Status sparse_reshape_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(0, 2));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_ASSIGN(const PartialShape shape, c.with_rank(2, 1));
  c.set_output(0, {indices.dim(0), shape.dim(0)});
  c.set_output(1, {shape.dim(0)});
  return {};
}

Status sparse_concat_shape(ShapeContext& c) {
  const int parts = c.num_inputs() / 3;
  int64_t count = 0, rank = kUnknown;
  for (int i = 0; i < parts; ++i) {
    TAGFLOW_ASSIGN(const Sparse part,
                   sparse_input(c, {i, parts + i, 2 * parts + i}));
    count = add_dims(count, part.count);
    TAGFLOW_ASSIGN(rank, same_dim(c, rank, part.rank, "the ranks of parts"));
  }
  set_sparse(c, count, rank);
  return {};
}

Status sparse_split_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Sparse sparse, sparse_input(c, {1, 2, 3}));
  const int parts = c.num_outputs() / 3;
  for (int i = 0; i < parts; ++i)
    set_sparse(c, kUnknown, sparse.rank, i, parts);
  return {};
}

Status sparse_slice_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(Sparse sparse, sparse_input(c));
  for (int i : {3, 4}) {
    TAGFLOW_ASSIGN(const PartialShape at, c.with_rank(i, 1));
    TAGFLOW_ASSIGN(sparse.rank, same_dim(c, sparse.rank, at.dim(0),
                                         "the ranks of shape and slice"));
  }
  set_sparse(c, kUnknown, sparse.rank);
  return {};
}

Status sparse_slice_grad_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_ASSIGN(const PartialShape indices, c.with_rank(1, 2));
  c.set_output(0, {indices.dim(0)});
  return {};
}

Status sparse_reduce_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Sparse sparse, sparse_input(c));
  TAGFLOW_ASSIGN(const bool keep_dims, c.attr<bool>("keep_dims"));
  const bool to_sparse = c.num_outputs() == 3;
  const auto axes = constant_indices(c, 3);
  PartialShape out;
  if (axes && sparse.rank != kUnknown && sparse.rank <= kMaxRank) {
    const auto rank = int(sparse.rank);
    std::vector<bool> is_reduced(size_t(rank), false);
    for (int64_t axis : *axes) {
      TAGFLOW_ASSIGN(const int at, shape_axis(c, axis, rank));
      is_reduced[size_t(at)] = true;
    }
    out = PartialShape::scalar();
    for (int d = 0; d < rank; ++d) {
      if (is_reduced[size_t(d)] && keep_dims) out.add_dim(1);
      if (!is_reduced[size_t(d)])
        out.add_dim(sparse.shape.has_rank() ? sparse.shape.dim(d) : kUnknown);
    }
  }
  if (to_sparse) {
    set_sparse(c, kUnknown, out.has_rank() ? out.rank() : kUnknown);
  } else {
    c.set_output(0, std::move(out));
  }
  return {};
}

Status fill_empty_rows_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Sparse sparse, sparse_input(c));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(3, 0).status());
  c.set_output(0, {kUnknown, sparse.rank});
  c.set_output(1, {kUnknown});
  const bool has_rows = sparse.shape.has_rank() && sparse.shape.rank() > 0;
  c.set_output(2, {has_rows ? sparse.shape.dim(0) : kUnknown});
  c.set_output(3, {sparse.count});
  return {};
}

Status fill_empty_rows_grad_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape places, c.with_rank(0, 1));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  c.set_output(0, places);
  c.set_output(1, PartialShape::scalar());
  return {};
}

// For ops on single elements of a sparse tensor.
Status sparse_values_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Sparse sparse, sparse_input(c));
  c.set_output(0, {sparse.count});
  return {};
}

Status sparse_to_dense_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(3, 0).status());
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(1));
  c.set_output(0, std::move(shape));
  return {};
}

Status add_to_dense_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(sparse_input(c).status());
  c.set_output(0, c.input(3));
  return {};
}

Status sparse_product_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Sparse a, sparse_input(c));
  TAGFLOW_ASSIGN(const PartialShape b, c.with_rank(3, 2));
  TAGFLOW_ASSIGN(const bool adjoint_a, c.attr<bool>("adjoint_a"));
  TAGFLOW_ASSIGN(const bool adjoint_b, c.attr<bool>("adjoint_b"));
  TAGFLOW_RETURN_IF_ERROR(
      same_dim(c, a.rank, 2, "the rank of the sparse matrix").status());
  const bool known = a.shape.has_rank() && a.shape.rank() == 2;
  const auto dim = [&](int i) { return known ? a.shape.dim(i) : kUnknown; };
  TAGFLOW_RETURN_IF_ERROR(same_dim(c, dim(adjoint_a ? 0 : 1),
                                   b.dim(adjoint_b ? 1 : 0),
                                   "the inner dimensions")
                              .status());
  c.set_output(0, {dim(adjoint_a ? 1 : 0), b.dim(adjoint_b ? 0 : 1)});
  return {};
}

Status ragged_range_shape(ShapeContext& c) {
  int64_t rows = kUnknown;
  bool has_vector = false, has_rank = true;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& input = c.input(i);
    has_rank = has_rank && input.has_rank();
    if (!input.has_rank() || input.rank() == 0) continue;
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
    has_vector = true;
    TAGFLOW_ASSIGN(rows, same_dim(c, rows, input.dim(0),
                                  "the numbers of starts, limits and deltas"));
  }
  if (has_rank && !has_vector) rows = 1;
  c.set_output(0, {add_dims(rows, 1)});
  c.set_output(1, {kUnknown});
  return {};
}

// If the requested shape leaves a dimension open, it is that of the longest
// row, or of the values.
Status ragged_to_dense_shape(ShapeContext& c) {
  constexpr int kPartitions = 3;
  TAGFLOW_ASSIGN(const auto types,
                 c.attr<std::vector<std::string>>("row_partition_types"));
  if (types.empty() || types.size() != size_t(c.num_inputs() - kPartitions))
    return c.fail(
        fmt::format("there are {} row_partition_types for {} partitions",
                    types.size(), c.num_inputs() - kPartitions));
  const bool has_size = types[0] == "FIRST_DIM_SIZE";
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(kPartitions, has_size ? 0 : 1).status());
  for (int i = kPartitions + 1; i < c.num_inputs(); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
  TAGFLOW_ASSIGN(const PartialShape values, c.with_rank_at_least(1, 1));
  const PartialShape& wanted = c.input(0);
  PartialShape given;
  if (wanted.has_rank() && wanted.rank() == 1) {
    TAGFLOW_ASSIGN(given, c.constant_as_shape(0));
  }
  const int ragged = int(types.size()) - (has_size ? 1 : 0);
  if (!values.has_rank()) {
    c.set_output(0, std::move(given));
    return {};
  }
  std::vector<int64_t> dims(size_t(ragged) + 1, kUnknown);
  for (int i = 1; i < values.rank(); ++i) dims.push_back(values.dim(i));
  if (given.has_rank() && given.rank() != int(dims.size()))
    return c.fail(fmt::format("shape {} is of rank {}, the ragged tensor of {}",
                              given.to_string(), given.rank(), dims.size()));
  for (size_t i = 0; given.has_rank() && i < dims.size(); ++i)
    if (given.dim_known(int(i))) dims[i] = given.dim(int(i));
  c.set_output(0, PartialShape(std::span<const int64_t>(dims)));
  return {};
}

Status ragged_to_sparse_shape(ShapeContext& c) {
  const int levels = c.num_inputs() - 1;
  for (int i = 0; i < levels; ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
  TAGFLOW_ASSIGN(const PartialShape values, c.with_rank_at_least(levels, 1));
  const int64_t rank =
      values.has_rank() ? int64_t{values.rank()} + levels : kUnknown;
  set_sparse(c, values.has_rank() ? values.num_elements() : kUnknown, rank);
  return {};
}

Status ragged_gather_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t levels, c.attr<int64_t>("PARAMS_RAGGED_RANK"));
  TAGFLOW_ASSIGN(const int64_t wanted, c.attr<int64_t>("OUTPUT_RAGGED_RANK"));
  for (int i = 0; i < int(levels); ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
  TAGFLOW_ASSIGN(const PartialShape values,
                 c.with_rank_at_least(int(levels), 1));
  const PartialShape& indices = c.input(int(levels) + 1);
  if (indices.has_rank() && levels + indices.rank() - 1 != wanted)
    return c.fail(fmt::format(
        "OUTPUT_RAGGED_RANK is {}, not {}: PARAMS_RAGGED_RANK and the rank of "
        "the indices, less 1",
        wanted, levels + indices.rank() - 1));
  for (int i = 0; i < int(wanted); ++i) c.set_output(i, {kUnknown});
  if (values.has_rank()) {
    PartialShape out = values;
    out.set_dim(0, kUnknown);
    c.set_output(int(wanted), std::move(out));
  }
  return {};
}

// A batch makes one variant of each row of the first level.
Status ragged_to_variant_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const auto levels, c.attr<int64_t>("RAGGED_RANK"));
  TAGFLOW_ASSIGN(const auto is_batch, c.attr<bool>("batched_input"));
  PartialShape output = PartialShape::scalar();
  for (int i = 0; i < int(levels); ++i) {
    TAGFLOW_ASSIGN(const PartialShape splits, c.with_rank(i, 1));
    if (i > 0 || !is_batch) continue;
    const int64_t count = splits.dim(0);
    output = {count < 1 ? kUnknown : count - 1};
  }
  c.set_output(0, output);
  return {};
}

Status ragged_from_variant_shape(ShapeContext& c) {
  for (int i = 0; i + 1 < c.num_outputs(); ++i) c.set_output(i, {kUnknown});
  return {};
}

Status ragged_to_variant_grad_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape values, c.constant_as_shape(2));
  c.set_output(0, std::move(values));
  return {};
}

void register_ragged_variant_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("RaggedTensorToVariant")
                   .inputs({"rt_nested_splits: RAGGED_RANK * Tsplits",
                            "rt_dense_values: Tvalues"})
                   .output("encoded_ragged: variant")
                   .attrs({"RAGGED_RANK: int >= 0", "Tvalues: type", kSplits,
                           "batched_input: bool"})
                   .shape(ragged_to_variant_shape));
  registry.add(
      OpDefBuilder("RaggedTensorFromVariant")
          .input("encoded_ragged: variant")
          .outputs({"output_nested_splits: output_ragged_rank * Tsplits",
                    "output_dense_values: Tvalues"})
          .attrs({"input_ragged_rank: int >= -1",
                  "output_ragged_rank: int >= 0", "Tvalues: type", kSplits})
          .shape(ragged_from_variant_shape));
  registry.add(OpDefBuilder("RaggedTensorToVariantGradient")
                   .inputs({"encoded_ragged_grad: variant",
                            "row_splits: Tsplits", "dense_values_shape: int32"})
                   .output("dense_values_grad: Tvalues")
                   .attrs({"Tvalues: type", kSplits})
                   .shape(ragged_to_variant_grad_shape));
}

void register_sparse_layout_ops(OpRegistry& registry) {
  const char* numbers = "T: numbertype";
  registry.add(OpDefBuilder("SparseReorder")
                   .inputs({"input_indices: int64", "input_values: T",
                            "input_shape: int64"})
                   .outputs({"output_indices: int64", "output_values: T"})
                   .attr("T: type")
                   .shape(sparse_reorder_shape));
  registry.add(OpDefBuilder("SparseReshape")
                   .inputs({"input_indices: int64", "input_shape: int64",
                            "new_shape: int64"})
                   .outputs({"output_indices: int64", "output_shape: int64"})
                   .shape(sparse_reshape_shape));
  registry.add(
      OpDefBuilder("SparseConcat")
          .inputs({"indices: N * int64", "values: N * T", "shapes: N * int64"})
          .outputs({"output_indices: int64", "output_values: T",
                    "output_shape: int64"})
          .attrs({"concat_dim: int", "N: int >= 2", "T: type"})
          .shape(sparse_concat_shape));
  registry.add(OpDefBuilder("SparseSplit")
                   .inputs({"split_dim: int64", "indices: int64", "values: T",
                            "shape: int64"})
                   .outputs({"output_indices: num_split * int64",
                             "output_values: num_split * T",
                             "output_shape: num_split * int64"})
                   .attrs({"num_split: int >= 1", "T: type"})
                   .shape(sparse_split_shape));
  registry.add(OpDefBuilder("SparseSlice")
                   .inputs({"indices: int64", "values: T", "shape: int64",
                            "start: int64", "size: int64"})
                   .outputs({"output_indices: int64", "output_values: T",
                             "output_shape: int64"})
                   .attr("T: type")
                   .shape(sparse_slice_shape));
  registry.add(OpDefBuilder("SparseSliceGrad")
                   .inputs({"backprop_val_grad: T", "input_indices: int64",
                            "input_start: int64", "output_indices: int64"})
                   .output("val_grad: T")
                   .attr(numbers)
                   .shape(sparse_slice_grad_shape));
  registry.add(
      OpDefBuilder("SparseFillEmptyRows")
          .inputs({"indices: int64", "values: T", "dense_shape: int64",
                   "default_value: T"})
          .outputs({"output_indices: int64", "output_values: T",
                    "empty_row_indicator: bool", "reverse_index_map: int64"})
          .attr("T: type")
          .shape(fill_empty_rows_shape));
  registry.add(OpDefBuilder("SparseFillEmptyRowsGrad")
                   .inputs({"reverse_index_map: int64", "grad_values: T"})
                   .outputs({"d_values: T", "d_default_value: T"})
                   .attr("T: type")
                   .shape(fill_empty_rows_grad_shape));
}

void register_sparse_math_ops(OpRegistry& registry) {
  const char* numbers = "T: numbertype";
  const char* reals = "T: realnumbertype";
  registry.add(
      OpDefBuilder("SparseAdd")
          .inputs({"a_indices: int64", "a_values: T", "a_shape: int64",
                   "b_indices: int64", "b_values: T", "b_shape: int64",
                   "thresh: Treal"})
          .outputs({"sum_indices: int64", "sum_values: T", "sum_shape: int64"})
          .attrs({numbers, "Treal: realnumbertype"})
          .shape(sparse_add_shape));
  registry.add(OpDefBuilder("SparseAddGrad")
                   .inputs({"backprop_val_grad: T", "a_indices: int64",
                            "b_indices: int64", "sum_indices: int64"})
                   .outputs({"a_val_grad: T", "b_val_grad: T"})
                   .attr(numbers)
                   .shape(sparse_add_grad_shape));
  for (const char* name : {"SparseSparseMaximum", "SparseSparseMinimum"})
    registry.add(
        OpDefBuilder(name)
            .inputs({"a_indices: int64", "a_values: T", "a_shape: int64",
                     "b_indices: int64", "b_values: T", "b_shape: int64"})
            .outputs({"output_indices: int64", "output_values: T"})
            .attr(name == std::string_view("SparseSparseMaximum") ? reals
                                                                  : numbers)
            .shape(sparse_add_shape));
  for (const char* name :
       {"SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"})
    registry.add(OpDefBuilder(name)
                     .inputs({"sp_indices: int64", "sp_values: T",
                              "sp_shape: int64", "dense: T"})
                     .output("output: T")
                     .attr(numbers)
                     .shape(sparse_values_shape));
  registry.add(
      OpDefBuilder("SparseSoftmax")
          .inputs({"sp_indices: int64", "sp_values: T", "sp_shape: int64"})
          .output("output: T")
          .attr("T: {half, float, double}")
          .shape(sparse_values_shape));
  registry.add(OpDefBuilder("SparseTensorDenseAdd")
                   .inputs({"a_indices: Tindices", "a_values: T",
                            "a_shape: Tindices", "b: T"})
                   .output("output: T")
                   .attrs({numbers, "Tindices: {int32, int64}"})
                   .shape(add_to_dense_shape));
  registry.add(
      OpDefBuilder("SparseTensorDenseMatMul")
          .inputs(
              {"a_indices: Tindices", "a_values: T", "a_shape: int64", "b: T"})
          .output("product: T")
          .attrs({"T: type", "Tindices: {int32, int64} = int64",
                  "adjoint_a: bool = false", "adjoint_b: bool = false"})
          .shape(sparse_product_shape));
  registry.add(
      OpDefBuilder("SparseToDense")
          .inputs({"sparse_indices: Tindices", "output_shape: Tindices",
                   "sparse_values: T", "default_value: T"})
          .output("dense: T")
          .attrs({"validate_indices: bool = true", "T: type",
                  "Tindices: {int32, int64}"})
          .shape(sparse_to_dense_shape));
  const auto add_reduction = [&](const std::string& name, const char* types) {
    const OpDefBuilder::Texts inputs = {"input_indices: int64",
                                        "input_values: T", "input_shape: int64",
                                        "reduction_axes: int32"};
    registry.add(OpDefBuilder(name)
                     .inputs(inputs)
                     .output("output: T")
                     .attrs({"keep_dims: bool = false", types})
                     .shape(sparse_reduce_shape));
    registry.add(OpDefBuilder(name + "Sparse")
                     .inputs(inputs)
                     .outputs({"output_indices: int64", "output_values: T",
                               "output_shape: int64"})
                     .attrs({"keep_dims: bool = false", types})
                     .shape(sparse_reduce_shape));
  };
  add_reduction("SparseReduceSum", numbers);
  add_reduction("SparseReduceMax", reals);
}

void register_ragged_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("RaggedRange")
                   .inputs({"starts: T", "limits: T", "deltas: T"})
                   .outputs({"rt_nested_splits: Tsplits", "rt_dense_values: T"})
                   .attrs({"T: {bfloat16, float, double, int32, int64} = int32",
                           kSplits})
                   .shape(ragged_range_shape));
  registry.add(
      OpDefBuilder("RaggedGather")
          .inputs({"params_nested_splits: PARAMS_RAGGED_RANK * Tsplits",
                   "params_dense_values: Tvalues", "indices: Tindices"})
          .outputs({"output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits",
                    "output_dense_values: Tvalues"})
          .attrs({"Tvalues: type", "Tindices: {int32, int64}", kSplits,
                  "PARAMS_RAGGED_RANK: int >= 1",
                  "OUTPUT_RAGGED_RANK: int >= 0"})
          .shape(ragged_gather_shape));
  registry.add(
      OpDefBuilder("RaggedTensorToTensor")
          .inputs({"shape: Tshape", "values: T", "default_value: T",
                   "row_partition_tensors: num_row_partition_tensors * Tindex"})
          .output("result: T")
          .attrs({"T: type", "Tindex: {int64, int32}", "Tshape: {int64, int32}",
                  "num_row_partition_tensors: int >= 1",
                  "row_partition_types: list(string)"})
          .shape(ragged_to_dense_shape));
  registry.add(OpDefBuilder("RaggedTensorToSparse")
                   .inputs({"rt_nested_splits: RAGGED_RANK * Tsplits",
                            "rt_dense_values: T"})
                   .outputs({"sparse_indices: int64", "sparse_values: T",
                             "sparse_dense_shape: int64"})
                   .attrs({"RAGGED_RANK: int >= 1", "T: type", kSplits})
                   .shape(ragged_to_sparse_shape));
}

}  // namespace

void register_sparse_ops(OpRegistry& registry) {
  register_sparse_layout_ops(registry);
  register_ragged_variant_ops(registry);
  register_sparse_math_ops(registry);
  register_ragged_ops(registry);
  register_sparse_batch_ops(registry);
}

}  // namespace tagflow::graph
