// What two files of tensors do not have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "devices/checkpoint/tensor_file.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// How the elements of two tensors of one type and shape differ.
struct ElementDifference {
  int64_t count = 0;  // of elements that differ by more than the tolerance
  // The largest difference of two numbers, of complex ones their distance;
  // infinite where one of them is NaN. 0 for strings and truth values.
  double most = 0;
};
// NaNs are equal to each other, and so are infinities of the same sign.
// REQUIRES: type and shape are those of `b`; no handles.
ElementDifference compare_elements(const Tensor& a, const Tensor& b,
                                   double tolerance);

// Something about one name.
struct TensorDifference {
  std::string name;
  std::string a, b;  // the types and shapes; empty where it is not there
  ElementDifference elements;

  // One line, without its end.
  std::string to_string() const;
};

// By name, of those that begin with `ignored` none, where that is not empty.
// Errors of reading either.
Result<std::vector<TensorDifference>> compare_files(
    const checkpoint::TensorFile& a, const checkpoint::TensorFile& b,
    double tolerance, std::string_view ignored = {});

}  // namespace tagflow::apps
