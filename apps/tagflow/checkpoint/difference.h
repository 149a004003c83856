// The differences between two files of tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/files/tensor_file.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// How the elements of two tensors of one type and shape differ.
struct ElementDifference {
  int64_t count = 0;  // of elements that differ by more than the tolerance
  // The largest absolute difference of two numbers; infinite if only one of
  // them is NaN. 0 for strings and bools.
  double most = 0;
};
// NaNs are equal to each other, and so are infinities of the same sign.
// REQUIRES: `a` and `b` have the same type and shape, and are not handles.
ElementDifference compare_elements(const Tensor& a, const Tensor& b,
                                   double tolerance);

// The difference for one name.
struct TensorDifference {
  std::string name;
  std::string a, b;  // types and shapes; empty if missing
  ElementDifference elements;

  // One line, without its end.
  std::string to_string() const;
};

// In the order of names. Skips names that begin with `ignored`, unless it is
// empty. Returns errors of reading either file.
Result<std::vector<TensorDifference>> compare_files(
    const checkpoint::TensorFile& a, const checkpoint::TensorFile& b,
    double tolerance, std::string_view ignored = {});

}  // namespace tagflow::apps
