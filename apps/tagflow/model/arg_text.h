// Arguments of ops and functions as text.
#pragma once

#include <string>
#include <vector>

#include "graph/op_def.h"

namespace tagflow::apps {

// "x: float", "values: N * T", "ref: Ref(T)", one for each.
std::vector<std::string> arg_texts(const std::vector<graph::ArgDef>& args);

}  // namespace tagflow::apps
