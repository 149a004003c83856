// The equations of Einsum.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::graph {

// A dimension's name: a letter of the equation, or for the dimensions that an
// ellipsis stands for, the innermost first, kEllipsis, kEllipsis + 1, ...
using Label = int;
inline constexpr Label kEllipsis = 256;

// The labels of one operand or of the result, one for each dimension.
using Labels = std::vector<Label>;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
};

// "ij,jk->ik" for operands of these ranks. An ellipsis, once per operand,
// stands for the dimensions that are left over; they broadcast. A label may
// repeat, which takes (or writes) a diagonal.
// InvalidArgument where the equation is malformed, has other operands, has
// more than two, does not fit a rank, or names in its output what no input
// has. The message names no op.
Result<Equation> parse_equation(std::string_view text,
                                const std::vector<int>& ranks);

}  // namespace tagflow::graph
