#include "graph/shape_context.h"

#include <algorithm>

#include "graph/known_value.h"

namespace tagflow::graph {
namespace {

std::string input_text(const Node& node, int i) {
  return fmt::format("input {} (\"{}\")", i,
                     node.inputs()[size_t(i)].to_string());
}

}  // namespace

const PartialShape& ShapeContext::input(int i) const {
  static const PartialShape unknown;
  const Endpoint& source = node_.inputs()[size_t(i)];
  return source.node == nullptr ? unknown
                                : source.node->output_shape(source.port);
}

const Tensor* ShapeContext::constant(int i) const {
  return known_constant(node_.inputs()[size_t(i)]);
}

Result<PartialShape> ShapeContext::constant_as_shape(int i) const {
  Result<PartialShape> shape = known_shape(node_.inputs()[size_t(i)]);
  if (shape.ok()) return shape;
  return std::move(shape).status().with_prefix(input_text(node_, i) + ": ");
}

Result<PartialShape> ShapeContext::with_rank(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (!shape.has_rank()) return PartialShape::of_rank(rank);
  if (shape.rank() != rank)
    return invalid_argument("{} has shape {}, of rank {}; rank {} is wanted",
                            input_text(node_, i), shape.to_string(),
                            shape.rank(), rank);
  return shape;
}

Result<PartialShape> ShapeContext::with_rank_at_least(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (shape.has_rank() && shape.rank() < rank)
    return invalid_argument(
        "{} has shape {}, of rank {}; at least rank {} is wanted",
        input_text(node_, i), shape.to_string(), shape.rank(), rank);
  return shape;
}

Status ShapeContext::fail(std::string_view what) const {
  return invalid_argument("[{}] node \"{}\": {}", node_.op(), node_.name(),
                          what);
}

Status scalar_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i)
    c.set_output(i, PartialShape::scalar());
  return {};
}

Status unknown_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape());
  return {};
}

Status unchanged_shape(ShapeContext& c) {
  if (c.num_inputs() == 0) return unknown_shape(c);
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return {};
}

Status broadcast_shape(ShapeContext& c) {
  if (c.num_inputs() < 2) return unchanged_shape(c);
  TAGFLOW_ASSIGN(const PartialShape shape, broadcast(c.input(0), c.input(1)));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shape);
  return {};
}

Status no_output_shape(ShapeContext&) { return {}; }

Result<PartialShape> broadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  PartialShape result = PartialShape::of_rank(rank);
  for (int i = 0; i < rank; ++i) {
    // Dimensions are aligned at the innermost; a missing one counts as 1.
    const int in_a = i - (rank - a.rank());
    const int in_b = i - (rank - b.rank());
    const int64_t x = in_a < 0 ? 1 : a.dim(in_a);
    const int64_t y = in_b < 0 ? 1 : b.dim(in_b);
    if (x == 1) {
      result.set_dim(i, y);
    } else if (y == 1 || x == y) {
      result.set_dim(i, x);
    } else if (x == PartialShape::kUnknown) {
      result.set_dim(i, y);
    } else if (y == PartialShape::kUnknown) {
      result.set_dim(i, x);
    } else {
      return invalid_argument(
          "shapes {} and {} cannot be broadcast: {} against {}", a.to_string(),
          b.to_string(), x, y);
    }
  }
  return result;
}

}  // namespace tagflow::graph
