// Diagonals: Diag, DiagPart and the MatrixDiag family.
#include <algorithm>
#include <limits>

#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

Status diag_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 1).status());
  c.set_output(0, concatenate(c.input(0), c.input(0)));
  return {};
}

Status diag_part_shape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.has_rank()) return unknown_shape(c);
  if (input.rank() % 2 != 0 || input.rank() == 0)
    return c.fail(fmt::format("the rank of {} must be even and positive",
                              input.to_string()));
  const int half = input.rank() / 2;
  auto merged =
      sub_shape(input, 0, half).merge(sub_shape(input, half, input.rank()));
  if (!merged.ok())
    return c.fail(fmt::format("the halves of {} differ", input.to_string()));
  c.set_output(0, std::move(*merged));
  return {};
}

Status matrix_diag_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape diagonal, c.with_rank_at_least(0, 1));
  if (!c.input(0).has_rank()) return unknown_shape(c);
  const int64_t size = diagonal.dim(diagonal.rank() - 1);
  c.set_output(0, concatenate(diagonal, {size}));
  return {};
}

Status matrix_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank_at_least(0, 2).status());
  return unchanged_shape(c);
}

Status matrix_diag_part_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape input, c.with_rank_at_least(0, 2));
  if (!c.input(0).has_rank()) return unknown_shape(c);
  const int64_t rows = input.dim(input.rank() - 2);
  const int64_t cols = input.dim(input.rank() - 1);
  const int64_t size =
      rows < 0 || cols < 0 ? PartialShape::kUnknown : std::min(rows, cols);
  c.set_output(0, concatenate(sub_shape(input, 0, input.rank() - 2), {size}));
  return {};
}

// The band of diagonals [lower, upper] of input `k`: one or two integers.
struct Band {
  int64_t lower = 0, upper = 0;
};

Result<std::optional<Band>> constant_band(const ShapeContext& c, int input) {
  if (c.input(input).has_rank() && c.input(input).rank() > 1)
    return c.fail("k must be a scalar or a vector of one or two");
  const auto k = constant_indices(c, input);
  if (!k) return std::optional<Band>();
  if (k->empty() || k->size() > 2)
    return c.fail("k must be a scalar or a vector of one or two");
  if (k->front() > k->back())
    return c.fail(
        fmt::format("k[0] = {} is over k[1] = {}", k->front(), k->back()));
  return std::optional<Band>({k->front(), k->back()});
}

Status matrix_diag_v2_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape diagonal, c.with_rank_at_least(0, 1));
  for (int i : {2, 3, 4}) TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 0).status());
  TAGFLOW_ASSIGN(const auto band, constant_band(c, 1));
  if (!c.input(0).has_rank() || !band) return unknown_shape(c);
  const bool single = band->lower == band->upper;
  const int rank = diagonal.rank();
  if (!single && rank < 2)
    return c.fail("a band of diagonals must be at least a matrix");
  const PartialShape batch = sub_shape(diagonal, 0, rank - (single ? 1 : 2));
  const int64_t length = diagonal.dim(rank - 1);
  const auto num_rows = constant_index(c, 2);
  const auto num_cols = constant_index(c, 3);
  int64_t rows = num_rows.value_or(PartialShape::kUnknown);
  int64_t cols = num_cols.value_or(PartialShape::kUnknown);
  // With the offset of a diagonal, larger values would overflow 64 bits.
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max() / 2;
  if (length >= 0 && length <= kLongest && num_rows && num_cols) {
    const int64_t min_rows = length - std::min<int64_t>(band->upper, 0);
    const int64_t min_cols = length + std::max<int64_t>(band->lower, 0);
    if (rows == -1 && cols == -1) {
      rows = cols = std::max(min_rows, min_cols);
    } else {
      if (rows == -1) rows = min_rows;
      if (cols == -1) cols = min_cols;
    }
  }
  c.set_output(0, concatenate(batch, {std::max(rows, PartialShape::kUnknown),
                                      std::max(cols, PartialShape::kUnknown)}));
  return {};
}

Status matrix_diag_part_v2_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape input, c.with_rank_at_least(0, 2));
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(2, 0).status());
  TAGFLOW_ASSIGN(const auto band, constant_band(c, 1));
  if (!c.input(0).has_rank() || !band) return unknown_shape(c);
  PartialShape output = sub_shape(input, 0, input.rank() - 2);
  const int64_t rows = input.dim(input.rank() - 2);
  const int64_t cols = input.dim(input.rank() - 1);
  if (band->lower != band->upper) output.add_dim(band->upper - band->lower + 1);
  const int64_t length = std::min(rows + std::min<int64_t>(band->upper, 0),
                                  cols - std::max<int64_t>(band->lower, 0));
  output.add_dim(rows < 0 || cols < 0 || length < 0 ? PartialShape::kUnknown
                                                    : length);
  c.set_output(0, std::move(output));
  return {};
}

}  // namespace

void register_array_diag_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("MatrixDiag")
                   .input("diagonal: T")
                   .output("output: T")
                   .attr("T: type")
                   .shape(matrix_diag_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("BatchMatrixDiag")
                   .input("diagonal: T")
                   .output("output: T")
                   .attr("T: type")
                   .shape(matrix_diag_shape));
  registry.add(OpDefBuilder("MatrixDiagV2")
                   .inputs({"diagonal: T", "k: int32", "num_rows: int32",
                            "num_cols: int32", "padding_value: T"})
                   .output("output: T")
                   .attr("T: type")
                   .shape(matrix_diag_v2_shape));
  registry.add(OpDefBuilder("MatrixDiagV3")
                   .inputs({"diagonal: T", "k: int32", "num_rows: int32",
                            "num_cols: int32", "padding_value: T"})
                   .output("output: T")
                   .attrs({"T: type",
                           "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', "
                           "'RIGHT_RIGHT'} = "
                           "'RIGHT_LEFT'"})
                   .shape(matrix_diag_v2_shape));
  registry.add(OpDefBuilder("MatrixDiagPart")
                   .input("input: T")
                   .output("diagonal: T")
                   .attr("T: type")
                   .shape(matrix_diag_part_shape));
  registry.add(OpDefBuilder("BatchMatrixDiagPart")
                   .input("input: T")
                   .output("diagonal: T")
                   .attr("T: type")
                   .shape(matrix_diag_part_shape));
  registry.add(OpDefBuilder("MatrixDiagPartV2")
                   .inputs({"input: T", "k: int32", "padding_value: T"})
                   .output("diagonal: T")
                   .attr("T: type")
                   .shape(matrix_diag_part_v2_shape));
  registry.add(OpDefBuilder("MatrixDiagPartV3")
                   .inputs({"input: T", "k: int32", "padding_value: T"})
                   .output("diagonal: T")
                   .attrs({"T: type",
                           "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', "
                           "'RIGHT_RIGHT'} = "
                           "'RIGHT_LEFT'"})
                   .shape(matrix_diag_part_v2_shape));
  registry.add(OpDefBuilder("MatrixSetDiag")
                   .inputs({"input: T", "diagonal: T"})
                   .output("output: T")
                   .attr("T: type")
                   .shape(matrix_shape));
  registry.add(OpDefBuilder("BatchMatrixSetDiag")
                   .inputs({"input: T", "diagonal: T"})
                   .output("output: T")
                   .attr("T: type")
                   .shape(matrix_shape));
  registry.add(OpDefBuilder("MatrixSetDiagV2")
                   .inputs({"input: T", "diagonal: T", "k: int32"})
                   .output("output: T")
                   .attr("T: type")
                   .shape(matrix_shape));
  registry.add(OpDefBuilder("MatrixSetDiagV3")
                   .inputs({"input: T", "diagonal: T", "k: int32"})
                   .output("output: T")
                   .attrs({"T: type",
                           "align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', "
                           "'RIGHT_RIGHT'} = "
                           "'RIGHT_LEFT'"})
                   .shape(matrix_shape));
  registry.add(
      OpDefBuilder("MatrixBandPart")
          .inputs({"input: T", "num_lower: Tindex", "num_upper: Tindex"})
          .output("band: T")
          .attrs({"T: type", "Tindex: {int32, int64} = int64"})
          .shape(matrix_shape)
          .work(Work::kMove));
  registry.add(OpDefBuilder("BatchMatrixBandPart")
                   .inputs({"input: T", "num_lower: int64", "num_upper: int64"})
                   .output("band: T")
                   .attr("T: type")
                   .shape(matrix_shape));
  registry.add(
      OpDefBuilder("Diag")
          .input("diagonal: T")
          .output("output: T")
          .attr("T: {bfloat16, half, float, double, int32, int64, complex64, "
                "complex128}")
          .shape(diag_shape)
          .work(Work::kMove));
  registry.add(
      OpDefBuilder("DiagPart")
          .input("input: T")
          .output("diagonal: T")
          .attr("T: {bfloat16, half, float, double, int32, int64, complex64, "
                "complex128}")
          .shape(diag_part_shape)
          .work(Work::kMove));
}

}  // namespace tagflow::graph
