// Op functions: sources, identities, control-flow primitives, and control
// dependencies. Errors are handled as in graph/builder/scope.h: the scope keeps
// them and the outputs are invalid.
#pragma once

#include <initializer_list>
#include <string>

#include "graph/builder/scope.h"

namespace tagflow::graph::ops {

// A constant with exactly the given C++ type.
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

// A tensor that must be fed.
inline Output placeholder(const Scope& s, DataType dtype,
                          PartialShape shape = {}) {
  return s.op("Placeholder", {},
              {{"dtype", dtype}, {"shape", std::move(shape)}});
}
// A tensor that can be fed.
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
// The same tensors, available once all of them are.
Outputs identity_n(const Scope& s, const Inputs& inputs);

inline Output no_op(const Scope& s) { return s.op("NoOp", {}); }
inline Output control_trigger(const Scope& s) {
  return s.op("ControlTrigger", {});
}
// An operation that completes when all of these have.
inline Output group(const Scope& s, const Outputs& outputs) {
  return no_op(s.with_control_dependencies(outputs));
}
// The tensors among `outputs`, available once all outputs and `control_inputs`
// are.
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

// `x`, available once `dependencies` have completed.
inline Output with_dependencies(const Scope& s, const Outputs& dependencies,
                                const Input& x) {
  return identity(s.with_control_dependencies(dependencies), x);
}

// Fails the step if the condition is false, with the first `summarize` elements
// of each of `data` (all if it is negative) in the message. An operation: ops
// that depend on the condition must wait for it.
inline Output assert_(const Scope& s, const Input& condition,
                      const Inputs& data, int summarize = 3) {
  return s.op("Assert", Inputs{condition}.add(data),
              {{"summarize", summarize}});
}
struct PrintAttrs {
  int64_t first_n = -1;  // how often it prints; always if negative
  int summarize = 3;     // elements of each tensor; all if negative
};
// Returns `x`, and writes the message and `data` to stderr whenever it runs:
// "message[1 2 3...][[4 5][6]]".
inline Output print(const Scope& s, const Input& x, const Inputs& data,
                    std::string message = "", PrintAttrs a = {}) {
  return s.op("Print", Inputs{x}.add(data),
              {{"message", std::move(message)},
               {"first_n", a.first_n},
               {"summarize", a.summarize}});
}
struct PrintLineAttrs {
  std::string separator = " ";
  std::string end = "\n";
  // Alternatives: stdout, log(info), log(warning), log(error), file://PATH
  // (appends).
  std::string output_stream = "stderr";
  int summarize = 3;  // first and last elements per dimension; < 0: all
};
// An operation that writes the values in one line, as print() of TensorFlow 2:
// literal strings unquoted, tensors as "[1 2 3 ... 7 8 9]".
Output print_line(const Scope& s, const Inputs& values,
                  const PrintLineAttrs& a = {});
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
