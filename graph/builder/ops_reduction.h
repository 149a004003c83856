// Op functions: reductions and scans.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

struct ReduceAttrs {
  bool keep_dims = false;
};

// A vector of all axes of x: a constant if its rank is known.
Output all_axes(const Scope& s, const Input& x);

// Each reduces along `axes`, an int32 or int64 scalar or vector; negative axes
// count from the end. Without axes, reduces along all.
#define TAGFLOW_REDUCTION(function, op_name)                                \
  inline Output function(const Scope& s, const Input& x, const Input& axes, \
                         ReduceAttrs a = {}) {                              \
    return s.op(op_name, {x, axes}, {{"keep_dims", a.keep_dims}});          \
  }                                                                         \
  inline Output function(const Scope& s, const Input& x) {                  \
    return function(s, x, all_axes(s, x));                                  \
  }
TAGFLOW_REDUCTION(reduce_sum, "Sum")
TAGFLOW_REDUCTION(reduce_mean, "Mean")
TAGFLOW_REDUCTION(reduce_prod, "Prod")
TAGFLOW_REDUCTION(reduce_max, "Max")
TAGFLOW_REDUCTION(reduce_min, "Min")
TAGFLOW_REDUCTION(reduce_all, "All")
TAGFLOW_REDUCTION(reduce_any, "Any")
#undef TAGFLOW_REDUCTION

struct ArgAttrs {
  DataType output_type = DataType::kInt64;
};
inline Output arg_max(const Scope& s, const Input& x, const Input& axis,
                      ArgAttrs a = {}) {
  return s.op("ArgMax", {x, axis}, {{"output_type", a.output_type}});
}
inline Output arg_min(const Scope& s, const Input& x, const Input& axis,
                      ArgAttrs a = {}) {
  return s.op("ArgMin", {x, axis}, {{"output_type", a.output_type}});
}

struct ScanAttrs {
  bool exclusive = false;
  bool reverse = false;
};
inline Output cumsum(const Scope& s, const Input& x, const Input& axis,
                     ScanAttrs a = {}) {
  return s.op("Cumsum", {x, axis},
              {{"exclusive", a.exclusive}, {"reverse", a.reverse}});
}
inline Output l2_loss(const Scope& s, const Input& x) {
  return s.op("L2Loss", {x});
}

}  // namespace tagflow::graph::ops
