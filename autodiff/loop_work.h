// A loop while its gradient is made. Of the two ways in which that is done:
// loop_backprop.cpp and segment_backprop.cpp.
#pragma once

#include "autodiff/backprop.h"

namespace tagflow::autodiff {

// What is the same in all iterations: its gradient is a sum.
struct Backprop::LoopConstant {
  Endpoint inside;        // in the loop
  Endpoint outside;       // what enters
  Gradient at_end = {};   // of what it is in the last iteration, or
  bool is_begun = false;  // what its sum begins with: begin_sum()
  // Which results of the backward loop have the sum: one, or a list of rows and
  // one of indices.
  size_t result = 0;
  size_t results = 0;
  DataType type = DataType::kInvalid;
  DataType index_type = DataType::kInvalid;
};

// One loop while its gradient is made.
struct Backprop::LoopWork {
  // A variable that changes, and has a gradient of its own in each iteration.
  struct Variable {
    const LoopVariable* of;
    Gradient at_end = {};  // of what it is in the last iteration
  };
  const Loop& loop;
  ForwardLoop& forward;
  std::vector<Variable> variables = {};
  std::vector<LoopConstant> constants = {};

  // The name of a variable of the backward loop.
  static std::string path_of(const Endpoint& inside) {
    return fmt::format("gradient of \"{}\"", inside.to_string());
  }
  // A gradient has its tensor's shape, also where shape inference does not see
  // it. Where it sees another one, the loop refuses it.
  static void narrow(Analysis& analysis, const Output& value,
                     const PartialShape& shape) {
    if (value.has_tensor())
      narrow_shape(analysis.graph(), value.endpoint(), shape);
  }
};

}  // namespace tagflow::autodiff
