// How an op's inputs, as given, match its definition. Of the builder.
#pragma once

#include <string>
#include <vector>

#include "graph/builder/output.h"

namespace tagflow::graph {

// What a literal at some input becomes.
struct InputType {
  std::string name;                     // of the argument
  DataType dtype = DataType::kInvalid;  // kInvalid: the literal's own type
};

// One for each input: a literal becomes what the other inputs of the same
// type, the attributes or the definition ask for. InvalidArgument where the
// number of inputs is wrong, or does not say how they are shared among
// several lists.
Result<std::vector<InputType>> literal_types(const OpDef& def,
                                             const Inputs& inputs,
                                             const AttrMap& attrs);

}  // namespace tagflow::graph
