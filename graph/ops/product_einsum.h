// The equations of Einsum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::graph {

// A dimension's name: a letter of the equation; or kEllipsis, kEllipsis + 1,
// ... for the dimensions of an ellipsis, starting with the innermost.
using Label = int;
inline constexpr Label kEllipsis = 256;

// The labels of one operand or of the result, one for each dimension.
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

// Parses "ij,jk->ik" for operands of these ranks. An ellipsis, once per
// operand, stands for the remaining dimensions, which are broadcast. A repeated
// label reads (or writes) a diagonal. InvalidArgument if the equation is
// malformed, has the wrong number of operands or more than two, does not match
// a rank, or has an output label that no input has. The message names no op.
Result<Equation> parse_equation(std::string_view text,
                                const std::vector<int>& ranks);

}  // namespace tagflow::graph
