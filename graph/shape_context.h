// The view that a shape function has of its node.
#pragma once

#include <string_view>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// Valid only during one call of a ShapeFn.
class ShapeContext {
 public:
  explicit ShapeContext(const Node& node) : node_(node) {
    outputs_.resize(size_t(node.num_outputs()));
  }

  const Node& node() const { return node_; }
  int num_inputs() const { return node_.num_inputs(); }
  int num_outputs() const { return node_.num_outputs(); }
  // The shape of an input; of unknown rank for an open back edge.
  const PartialShape& input(int i) const;
  // The value of an input that is a Const (also through Identity); null if it
  // is not known before the run.
  const Tensor* constant(int i) const;
  // The value of an integer vector or scalar input as a shape: -1 becomes an
  // unknown dimension. If only the length of the input is known, the shape has
  // that rank, otherwise unknown rank. Follows Shape and Pack of scalars.
  Result<PartialShape> constant_as_shape(int i) const;
  template <class T>
  Result<T> attr(std::string_view name) const {
    return node_.attr<T>(name);
  }
  void set_output(int i, PartialShape shape) {
    outputs_[size_t(i)] = std::move(shape);
  }
  const PartialShapes& outputs() const& { return outputs_; }
  PartialShapes outputs() && { return std::move(outputs_); }

  // input(i), with that rank if its rank is unknown. InvalidArgument, naming
  // the input, if it has another rank.
  Result<PartialShape> with_rank(int i, int rank) const;
  Result<PartialShape> with_rank_at_least(int i, int rank) const;
  // InvalidArgument about this node, with the prefix "[op] node "n": ...".
  Status fail(std::string_view what) const;

 private:
  const Node& node_;
  PartialShapes outputs_;
};

// Common shape functions.
Status scalar_shape(ShapeContext& c);     // every output a scalar
Status unknown_shape(ShapeContext& c);    // nothing is known
Status unchanged_shape(ShapeContext& c);  // outputs like input 0
Status broadcast_shape(ShapeContext& c);  // inputs 0 and 1 broadcast
Status no_output_shape(ShapeContext& c);  // ops without outputs

// The shape of two operands broadcast against each other (numpy's rules).
Result<PartialShape> broadcast(const PartialShape& a, const PartialShape& b);

}  // namespace tagflow::graph
