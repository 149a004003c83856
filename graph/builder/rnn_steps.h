// Helpers that the loops of rnn.h share. Internal to the builder.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/rnn.h"

namespace tagflow::graph {

// A size that may be known only when the graph runs.
struct RnnSize {
  int64_t known = PartialShape::kUnknown;
  Output value;  // an int32 scalar
};
// Dimension `dim` of a tensor of that rank or more.
RnnSize rnn_size(const Scope& s, const Output& x, int dim);

// The same output, with additional information about its shape.
Output with_known_shape(const Scope& s, const Output& x,
                        const PartialShape& shape);

// Zeros of [batch, rest...].
Output rnn_zeros(const Scope& s, const RnnSize& batch, const Shape& rest,
                 DataType dtype);

// A cell as the body of a loop, with checks of its inputs and results.
class RnnSteps {
 public:
  // `what` is the function, for messages. Builds the cell; on an error the
  // scope fails.
  RnnSteps(const Scope& s, const char* what, const VariableScope& vars,
           const RnnCell& cell, int64_t input_size, const RnnSize& batch,
           DataType dtype);

  const std::vector<StatePart>& state() const { return state_; }
  // [batch, size] of a part, as far as it is known.
  PartialShape state_shape(size_t part) const;
  PartialShape output_shape() const;
  // InvalidArgument unless the tensors are a state of the cell.
  Status check_state(const char* which, const Outputs& state) const;
  // Computes one step; on an error the scope fails and the result is invalid.
  CellStep operator()(const Scope& in, const Output& input,
                      const Outputs& state) const;

 private:
  const Scope scope_;
  const char* const what_;
  const std::string name_;
  const std::vector<StatePart> state_;
  const int64_t output_size_;
  const int64_t batch_;
  const DataType dtype_;
  const CellFn fn_;
};

}  // namespace tagflow::graph
