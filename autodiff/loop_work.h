// A loop while its gradient is made, by loop_backprop.cpp or
// segment_backprop.cpp.
#pragma once

#include "autodiff/backprop.h"

namespace tagflow::autodiff {

// A loop-invariant tensor: its gradient is a sum over the iterations.
struct Backprop::LoopConstant {
  Endpoint inside;        // in the loop
  Endpoint outside;       // the value that enters
  Gradient at_end = {};   // of its value in the last iteration, or
  bool is_begun = false;  // the start of its sum: begin_sum()
  // The results of the backward loop that hold the sum: one, or a list of rows
  // and one of indices.
  size_t result = 0;
  size_t results = 0;
  DataType type = DataType::kInvalid;
  DataType index_type = DataType::kInvalid;
};

// One loop while its gradient is made.
struct Backprop::LoopWork {
  // A variable that changes, and has a separate gradient in each iteration.
  struct Variable {
    const LoopVariable* of;
    Gradient at_end = {};  // of its value in the last iteration
  };
  const Loop& loop;
  ForwardLoop& forward;
  std::vector<Variable> variables = {};
  std::vector<LoopConstant> constants = {};

  // The name of a variable of the backward loop.
  static std::string path_of(const Endpoint& inside) {
    return fmt::format("gradient of \"{}\"", inside.to_string());
  }
  // A gradient has its tensor's shape, also if shape inference cannot derive
  // it. If it derives another shape, the loop rejects the gradient.
  static void narrow(Analysis& analysis, const Output& value,
                     const PartialShape& shape) {
    if (value.has_tensor())
      narrow_shape(analysis.graph(), value.endpoint(), shape);
  }
};

}  // namespace tagflow::autodiff
