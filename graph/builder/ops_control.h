// Op functions: sources, identities, the control-flow primitives, and what
// orders ops. All of them follow graph/builder/scope.h: on an error the scope
// keeps it and the outputs are invalid.
#pragma once

#include <initializer_list>
#include <string>

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

// A constant of exactly the C++ type given.
template <class T>
requires std::is_arithmetic_v<T> Output constant(const Scope& s, T value) {
  return s.constant(Tensor::scalar(value));
}
template <class T>
requires std::is_arithmetic_v<T> Output
constant(const Scope& s, std::initializer_list<T> vector) {
  return s.constant(Tensor::vector(vector));
}
inline Output constant(const Scope& s, Tensor value) {
  return s.constant(std::move(value));
}
inline Output constant(const Scope& s, const char* value) {
  return s.constant(Tensor::scalar(value));
}

// To be fed.
inline Output placeholder(const Scope& s, DataType dtype,
                          PartialShape shape = {}) {
  return s.op("Placeholder", {},
              {{"dtype", dtype}, {"shape", std::move(shape)}});
}
// May be fed.
inline Output placeholder_with_default(const Scope& s, const Input& value,
                                       PartialShape shape) {
  return s.op("PlaceholderWithDefault", {value}, {{"shape", std::move(shape)}});
}

inline Output identity(const Scope& s, const Input& x) {
  return s.op("Identity", {x});
}
inline Output stop_gradient(const Scope& s, const Input& x) {
  return s.op("StopGradient", {x});
}
inline Output prevent_gradient(const Scope& s, const Input& x,
                               std::string message = "") {
  return s.op("PreventGradient", {x}, {{"message", std::move(message)}});
}
// The same tensors, all there once the last of them is.
Outputs identity_n(const Scope& s, const Inputs& inputs);

inline Output no_op(const Scope& s) { return s.op("NoOp", {}); }
inline Output control_trigger(const Scope& s) {
  return s.op("ControlTrigger", {});
}
// An operation that is done when all of these are.
inline Output group(const Scope& s, const Outputs& outputs) {
  return no_op(s.with_control_dependencies(outputs));
}
// The tensors among `outputs`, none of them there before all outputs and
// `control_inputs` are done.
Outputs tuple(const Scope& s, const Outputs& outputs,
              const Outputs& control_inputs = {});

struct SwitchOutputs {
  Output on_false, on_true;
};
inline SwitchOutputs switch_(const Scope& s, const Input& data,
                             const Input& pred) {
  const OpResult result = s.op("Switch", {data, pred});
  return {result[0], result[1]};
}
struct MergeOutputs {
  Output output, value_index;
};
inline MergeOutputs merge(const Scope& s, const Inputs& inputs) {
  const OpResult result = s.op("Merge", inputs);
  return {result[0], result[1]};
}

// Fails the step, showing `data`, where the condition is false.
inline Output assert_(const Scope& s, const Input& condition,
                      const Inputs& data, int summarize = 3) {
  return s.op("Assert", Inputs{condition}.add(data),
              {{"summarize", summarize}});
}
// `x`, printing `data` whenever it passes.
inline Output print(const Scope& s, const Input& x, const Inputs& data,
                    std::string message = "") {
  return s.op("Print", Inputs{x}.add(data), {{"message", std::move(message)}});
}
inline Output ensure_shape(const Scope& s, const Input& x, PartialShape shape) {
  return s.op("EnsureShape", {x}, {{"shape", std::move(shape)}});
}
inline Output check_numerics(const Scope& s, const Input& x,
                             std::string message) {
  return s.op("CheckNumerics", {x}, {{"message", std::move(message)}});
}

// The outputs of a node, as a list.
Outputs all_outputs(const OpResult& result);

}  // namespace tagflow::graph::ops
