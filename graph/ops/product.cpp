// Matrix products.
#include "graph/op_registry.h"
#include "graph/ops/product_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// The shape of the product of matrices whose last two dimensions are those of
// `a` and `b`, transposed if requested. `batch` precedes them.
Result<PartialShape> product_shape(const ShapeContext& c, const PartialShape& a,
                                   bool transpose_a, const PartialShape& b,
                                   bool transpose_b, PartialShape batch) {
  const int a_rank = a.rank();
  const int b_rank = b.rank();
  const int64_t inner_a = a.dim(transpose_a ? a_rank - 2 : a_rank - 1);
  const int64_t inner_b = b.dim(transpose_b ? b_rank - 1 : b_rank - 2);
  if (inner_a != PartialShape::kUnknown && inner_b != PartialShape::kUnknown &&
      inner_a != inner_b)
    return c.fail(fmt::format("the inner dimensions of {}{} and {}{} differ",
                              a.to_string(), transpose_a ? " (transposed)" : "",
                              b.to_string(),
                              transpose_b ? " (transposed)" : ""));
  if (!batch.has_rank()) return PartialShape();
  batch.add_dim(a.dim(transpose_a ? a_rank - 1 : a_rank - 2));
  batch.add_dim(b.dim(transpose_b ? b_rank - 2 : b_rank - 1));
  return batch;
}

Status matmul_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape a, c.with_rank(0, 2));
  TAGFLOW_ASSIGN(const PartialShape b, c.with_rank(1, 2));
  TAGFLOW_ASSIGN(const bool transpose_a, c.attr<bool>("transpose_a"));
  TAGFLOW_ASSIGN(const bool transpose_b, c.attr<bool>("transpose_b"));
  TAGFLOW_ASSIGN(
      PartialShape out,
      product_shape(c, a, transpose_a, b, transpose_b, PartialShape::scalar()));
  c.set_output(0, std::move(out));
  return Status();
}

PartialShape batch_dims(const PartialShape& shape) {
  return PartialShape(shape.dims().first(size_t(shape.rank() - 2)));
}

Status batch_matmul_shape(ShapeContext& c, bool broadcasts) {
  TAGFLOW_ASSIGN(const PartialShape a, c.with_rank_at_least(0, 2));
  TAGFLOW_ASSIGN(const PartialShape b, c.with_rank_at_least(1, 2));
  TAGFLOW_ASSIGN(const bool adj_x, c.attr<bool>("adj_x"));
  TAGFLOW_ASSIGN(const bool adj_y, c.attr<bool>("adj_y"));
  if (!a.has_rank() || !b.has_rank()) return Status();
  Result<PartialShape> batch = broadcasts
                                   ? broadcast(batch_dims(a), batch_dims(b))
                                   : batch_dims(a).merge(batch_dims(b));
  if (!batch.ok())
    return c.fail(fmt::format("the batch dimensions of {} and {} do not fit",
                              a.to_string(), b.to_string()));
  TAGFLOW_ASSIGN(PartialShape out, product_shape(c, a, adj_x, b, adj_y,
                                                 std::move(batch).value()));
  c.set_output(0, std::move(out));
  return Status();
}

OpDefBuilder batch_matmul(const char* name) {
  return OpDefBuilder(name)
      .attrs({"adj_x: bool = false", "adj_y: bool = false",
              "grad_x: bool = false", "grad_y: bool = false"})
      .work(Work::kProduct);
}

}  // namespace

void register_product_ops(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("MatMul")
          .inputs({"a: T", "b: T"})
          .output("product: T")
          .attrs({"transpose_a: bool = false", "transpose_b: bool = false",
                  "T: {bfloat16, half, float, double, int32, "
                  "int64, uint8, uint16, uint32, uint64, complex64, "
                  "complex128}",
                  "grad_a: bool = false", "grad_b: bool = false"})
          .shape(matmul_shape)
          .work(Work::kProduct));
  const char* types =
      "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, "
      "uint32, uint64, complex64, complex128}";
  for (const char* name : {"BatchMatMul", "BatchMatMulV2"}) {
    const bool broadcasts = std::string_view(name) == "BatchMatMulV2";
    registry.add(batch_matmul(name)
                     .inputs({"x: T", "y: T"})
                     .output("output: T")
                     .attr(types)
                     .shape([broadcasts](ShapeContext& c) {
                       return batch_matmul_shape(c, broadcasts);
                     }));
  }
  const char* set =
      "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, "
      "complex64, complex128}";
  registry.add(
      batch_matmul("BatchMatMulV3")
          .inputs({"x: Ta", "y: Tb"})
          .output("output: Tout")
          .attrs({fmt::format("Ta: {}", set), fmt::format("Tb: {}", set),
                  fmt::format("Tout: {}", set)})
          .shape([](ShapeContext& c) { return batch_matmul_shape(c, true); }));
  register_product_einsum_ops(registry);
  register_product_fused_ops(registry);
}

}  // namespace tagflow::graph
