// The lines of a _FusedElementwise's program.
#pragma once

#include <boost/container/static_vector.hpp>
#include <string_view>

#include "graph/status.h"

namespace tagflow::devices {

// "AddV2 0 3": an op and its operands, which are numbered: the inputs of the
// node, then the results so far.
struct FusedLine {
  std::string_view op;  // of the line that was parsed
  boost::container::static_vector<size_t, 2> operands;
};

// InvalidArgument for an operand out of `num_values`, or a third operand.
Result<FusedLine> parse_fused_line(std::string_view line, size_t num_values);

}  // namespace tagflow::devices
