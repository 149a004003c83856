// Linear algebra on the matrices in the last two dimensions of tensors.
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

namespace {

// A batch of matrices.
struct Matrices {
  PartialShape batch;
  int64_t rows = kUnknown, columns = kUnknown;

  PartialShape with(std::initializer_list<int64_t> dims) const {
    return concatenate(batch, PartialShape(dims));
  }
};

Result<Matrices> matrices_at(const ShapeContext& c, int input) {
  TAGFLOW_ASSIGN(const PartialShape shape, c.with_rank_at_least(input, 2));
  if (!shape.has_rank()) return Matrices();
  const int rank = shape.rank();
  return Matrices{sub_shape(shape, 0, rank - 2), shape.dim(rank - 2),
                  shape.dim(rank - 1)};
}

Result<Matrices> square_at(const ShapeContext& c, int input) {
  TAGFLOW_ASSIGN(Matrices m, matrices_at(c, input));
  if (m.rows != kUnknown && m.columns != kUnknown && m.rows != m.columns)
    return c.fail(fmt::format("the matrices of {} are not square",
                              c.input(input).to_string()));
  m.rows = m.columns = std::max(m.rows, m.columns);
  return m;
}

Status square_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Matrices m, square_at(c, 0));
  c.set_output(0, m.with({m.rows, m.rows}));
  return {};
}

Status cholesky_grad_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(square_shape(c));
  return square_at(c, 1).status();
}

Status determinant_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Matrices m, square_at(c, 0));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, m.batch);
  return {};
}

Status solve_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Matrices m, square_at(c, 0));
  TAGFLOW_ASSIGN(const Matrices rhs, matrices_at(c, 1));
  PartialShape batch;
  if (c.node().op() == "MatrixTriangularSolve") {
    if (m.batch.has_rank() && rhs.batch.has_rank()) {
      TAGFLOW_ASSIGN(batch, broadcast(m.batch, rhs.batch));
    }
  } else {
    TAGFLOW_ASSIGN(batch, m.batch.merge(rhs.batch));
  }
  if (m.rows != kUnknown && rhs.rows != kUnknown && m.rows != rhs.rows)
    return c.fail(fmt::format("{} and the right-hand sides {} do not fit",
                              c.input(0).to_string(), c.input(1).to_string()));
  c.set_output(0, concatenate(batch, PartialShape({std::max(m.rows, rhs.rows),
                                                   rhs.columns})));
  return {};
}

Status lu_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Matrices m, square_at(c, 0));
  c.set_output(0, m.with({m.rows, m.rows}));
  c.set_output(1, m.with({m.rows}));
  return {};
}

int64_t least(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  return a == kUnknown || b == kUnknown ? kUnknown : std::min(a, b);
}

Status qr_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Matrices m, matrices_at(c, 0));
  TAGFLOW_ASSIGN(const bool full, c.attr<bool>("full_matrices"));
  const int64_t kept = full ? m.rows : least(m.rows, m.columns);
  c.set_output(0, m.with({m.rows, kept}));
  c.set_output(1, m.with({kept, m.columns}));
  return {};
}

Status eigen_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Matrices m, square_at(c, 0));
  TAGFLOW_ASSIGN(const bool has_vectors, c.attr<bool>("compute_v"));
  c.set_output(0, m.with({m.rows}));
  c.set_output(1, has_vectors ? m.with({m.rows, m.rows}) : PartialShape({0}));
  return {};
}

Status svd_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const Matrices m, matrices_at(c, 0));
  TAGFLOW_ASSIGN(const bool has_vectors, c.attr<bool>("compute_uv"));
  TAGFLOW_ASSIGN(const bool full, c.attr<bool>("full_matrices"));
  const int64_t kept = least(m.rows, m.columns);
  c.set_output(0, m.with({kept}));
  for (int i : {1, 2}) {
    const int64_t side = i == 1 ? m.rows : m.columns;
    c.set_output(i, has_vectors ? m.with({side, full ? side : kept})
                                : PartialShape({0}));
  }
  return {};
}

Status cross_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  auto both = c.input(0).merge(c.input(1));
  if (!both.ok())
    return c.fail(fmt::format("{} and {} differ in shape",
                              c.input(0).to_string(), c.input(1).to_string()));
  c.set_output(0, std::move(*both));
  return {};
}

}  // namespace

void register_linalg_ops(OpRegistry& registry) {
  const char* types = "T: {double, float, half, complex64, complex128}";
  registry.add(OpDefBuilder("Cross")
                   .inputs({"a: T", "b: T"})
                   .output("product: T")
                   .attr("T: realnumbertype")
                   .shape(cross_shape));
  registry.add(OpDefBuilder("Cholesky")
                   .input("input: T")
                   .output("output: T")
                   .attr(types)
                   .shape(square_shape));
  registry.add(OpDefBuilder("CholeskyGrad")
                   .inputs({"l: T", "grad: T"})
                   .output("output: T")
                   .attr("T: {half, float, double}")
                   .shape(cholesky_grad_shape));
  registry.add(OpDefBuilder("MatrixInverse")
                   .input("input: T")
                   .output("output: T")
                   .attrs({"adjoint: bool = false", types})
                   .shape(square_shape));
  registry.add(OpDefBuilder("MatrixSolve")
                   .inputs({"matrix: T", "rhs: T"})
                   .output("output: T")
                   .attrs({"adjoint: bool = false", types})
                   .shape(solve_shape));
  registry.add(
      OpDefBuilder("MatrixTriangularSolve")
          .inputs({"matrix: T", "rhs: T"})
          .output("output: T")
          .attrs({"lower: bool = true", "adjoint: bool = false",
                  "T: {bfloat16, double, float, half, complex64, complex128}"})
          .shape(solve_shape));
  registry.add(OpDefBuilder("MatrixDeterminant")
                   .input("input: T")
                   .output("output: T")
                   .attr("T: {half, float, double, complex64, complex128}")
                   .shape(determinant_shape));
  registry.add(OpDefBuilder("LogMatrixDeterminant")
                   .input("input: T")
                   .outputs({"sign: T", "log_abs_determinant: T"})
                   .attr("T: {half, float, double, complex64, complex128}")
                   .shape(determinant_shape));
  registry.add(OpDefBuilder("Lu")
                   .input("input: T")
                   .outputs({"lu: T", "p: output_idx_type"})
                   .attrs({types, "output_idx_type: {int32, int64} = int32"})
                   .shape(lu_shape));
  registry.add(OpDefBuilder("Qr")
                   .input("input: T")
                   .outputs({"q: T", "r: T"})
                   .attrs({"full_matrices: bool = false", types})
                   .shape(qr_shape));
  registry.add(OpDefBuilder("SelfAdjointEigV2")
                   .input("input: T")
                   .outputs({"e: T", "v: T"})
                   .attrs({"compute_v: bool = true", types})
                   .shape(eigen_shape));
  registry.add(OpDefBuilder("Svd")
                   .input("input: T")
                   .outputs({"s: T", "u: T", "v: T"})
                   .attrs({"compute_uv: bool = true",
                           "full_matrices: bool = false", types})
                   .shape(svd_shape));
}

}  // namespace tagflow::graph
