// Op functions: special functions.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

inline Output erf(const Scope& s, const Input& x) { return s.op("Erf", {x}); }

}  // namespace tagflow::graph::ops
