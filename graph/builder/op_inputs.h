// Matches the inputs given to an op with its definition. Internal.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/output.h"

namespace tagflow::graph {

// The type to which a literal input is converted.
struct InputType {
  std::string name;                     // of the argument
  DataType dtype = DataType::kInvalid;  // kInvalid: the literal's own type
};

// One for each input: a literal is converted to the type that the other inputs
// of the same type, the attributes or the definition determine. InvalidArgument
// if the number of inputs is wrong, or does not determine the lengths of
// several lists.
Result<std::vector<InputType>> literal_types(const OpDef& def,
                                             const Inputs& inputs,
                                             const AttrMap& attrs);

}  // namespace tagflow::graph
