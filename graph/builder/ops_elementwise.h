// Op functions: element-wise. Binary ones broadcast; a number literal takes
// the type of the other operand.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

#define TAGFLOW_UNARY(function, op_name)                   \
  inline Output function(const Scope& s, const Input& x) { \
    return s.op(op_name, {x});                             \
  }
#define TAGFLOW_BINARY(function, op_name)                                  \
  inline Output function(const Scope& s, const Input& x, const Input& y) { \
    return s.op(op_name, {x, y});                                          \
  }

TAGFLOW_BINARY(add, "AddV2")
TAGFLOW_BINARY(sub, "Sub")
TAGFLOW_BINARY(mul, "Mul")
TAGFLOW_BINARY(real_div, "RealDiv")
TAGFLOW_BINARY(div, "Div")  // of integers: truncated
TAGFLOW_BINARY(floor_div, "FloorDiv")
TAGFLOW_BINARY(floor_mod, "FloorMod")
TAGFLOW_BINARY(truncate_mod, "Mod")
TAGFLOW_BINARY(div_no_nan, "DivNoNan")
TAGFLOW_BINARY(pow, "Pow")
TAGFLOW_BINARY(maximum, "Maximum")
TAGFLOW_BINARY(minimum, "Minimum")
TAGFLOW_BINARY(squared_difference, "SquaredDifference")
TAGFLOW_BINARY(atan2, "Atan2")

TAGFLOW_BINARY(less, "Less")
TAGFLOW_BINARY(less_equal, "LessEqual")
TAGFLOW_BINARY(greater, "Greater")
TAGFLOW_BINARY(greater_equal, "GreaterEqual")
TAGFLOW_BINARY(equal, "Equal")
TAGFLOW_BINARY(not_equal, "NotEqual")
TAGFLOW_BINARY(logical_and, "LogicalAnd")
TAGFLOW_BINARY(logical_or, "LogicalOr")
TAGFLOW_UNARY(logical_not, "LogicalNot")

TAGFLOW_UNARY(neg, "Neg")
TAGFLOW_UNARY(abs, "Abs")
TAGFLOW_UNARY(sign, "Sign")
TAGFLOW_UNARY(square, "Square")
TAGFLOW_UNARY(sqrt, "Sqrt")
TAGFLOW_UNARY(rsqrt, "Rsqrt")
TAGFLOW_UNARY(reciprocal, "Reciprocal")
TAGFLOW_UNARY(exp, "Exp")
TAGFLOW_UNARY(expm1, "Expm1")
TAGFLOW_UNARY(log, "Log")
TAGFLOW_UNARY(log1p, "Log1p")
TAGFLOW_UNARY(sin, "Sin")
TAGFLOW_UNARY(cos, "Cos")
TAGFLOW_UNARY(sigmoid, "Sigmoid")
TAGFLOW_UNARY(tanh, "Tanh")
TAGFLOW_UNARY(floor, "Floor")
TAGFLOW_UNARY(ceil, "Ceil")
TAGFLOW_UNARY(round, "Round")
TAGFLOW_UNARY(is_nan, "IsNan")
TAGFLOW_UNARY(is_finite, "IsFinite")

#undef TAGFLOW_UNARY
#undef TAGFLOW_BINARY

// x if the condition holds, otherwise y; broadcasts.
inline Output select(const Scope& s, const Input& condition, const Input& x,
                     const Input& y) {
  return s.op("SelectV2", {condition, x, y});
}
inline Output cast(const Scope& s, const Input& x, DataType dtype) {
  return s.op("Cast", {x}, {{"DstT", dtype}});
}
inline Output bitcast(const Scope& s, const Input& x, DataType dtype) {
  return s.op("Bitcast", {x}, {{"type", dtype}});
}
inline Output broadcast_to(const Scope& s, const Input& x, const Input& shape) {
  return s.op("BroadcastTo", {x, shape});
}
struct BroadcastArgs {
  Output r0, r1;
};
inline BroadcastArgs broadcast_gradient_args(const Scope& s, const Input& s0,
                                             const Input& s1) {
  const OpResult result = s.op("BroadcastGradientArgs", {s0, s1});
  return {result[0], result[1]};
}
inline Output clip_by_value(const Scope& s, const Input& x, const Input& low,
                            const Input& high) {
  return s.op("ClipByValue", {x, low, high});
}
// The sum of tensors of one shape.
inline Output add_n(const Scope& s, const Inputs& inputs) {
  return s.op("AddN", inputs);
}

}  // namespace tagflow::graph::ops
