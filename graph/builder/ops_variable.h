// Op functions: variables.
#pragma once

#include <string>
#include <utility>

#include "graph/builder/ops_control_flow.h"

namespace tagflow::graph::ops {

// A variable of TensorFlow 2: its handle and its declared type and shape. Its
// name is that of the node, or `shared_name`.
struct Variable {
  Output handle;
  DataType dtype = DataType::kInvalid;
  PartialShape shape;
};

struct VariableArgs {
  std::string container;
  std::string shared_name;  // empty: the name of the node
};

inline Variable variable(const Scope& s, DataType dtype,
                         const PartialShape& shape, VariableArgs a = {}) {
  return {s.op("VarHandleOp", {},
               {{"dtype", dtype},
                {"shape", shape},
                {"container", std::move(a.container)},
                {"shared_name", std::move(a.shared_name)}}),
          dtype, shape};
}

// The value at the time when the op runs, after its control inputs.
inline Output read(const Scope& s, const Variable& v) {
  return s.op("ReadVariableOp", {v.handle}, {{"dtype", v.dtype}});
}
// Operations: use control dependencies to wait for them.
inline Output assign(const Scope& s, const Variable& v, const Input& value) {
  return s.op("AssignVariableOp", {v.handle, value}, {{"dtype", v.dtype}});
}
inline Output assign_add(const Scope& s, const Variable& v,
                         const Input& value) {
  return s.op("AssignAddVariableOp", {v.handle, value}, {{"dtype", v.dtype}});
}
inline Output assign_sub(const Scope& s, const Variable& v,
                         const Input& value) {
  return s.op("AssignSubVariableOp", {v.handle, value}, {{"dtype", v.dtype}});
}
inline Output is_initialized(const Scope& s, const Variable& v) {
  return s.op("VarIsInitializedOp", {v.handle});
}

// A variable of TensorFlow 1: a reference. It is read when the op that takes
// its value fires: Note [References] in graph/analysis/dereference.h.
inline Output reference_variable(const Scope& s, DataType dtype,
                                 const PartialShape& shape,
                                 VariableArgs a = {}) {
  return s.op("VariableV2", {},
              {{"dtype", dtype},
               {"shape", shape},
               {"container", std::move(a.container)},
               {"shared_name", std::move(a.shared_name)}});
}
// Each returns the reference.
inline Output assign(const Scope& s, const Output& reference,
                     const Input& value) {
  return s.op("Assign", {reference, value});
}
inline Output assign_add(const Scope& s, const Output& reference,
                         const Input& value) {
  return s.op("AssignAdd", {reference, value});
}
inline Output assign_sub(const Scope& s, const Output& reference,
                         const Input& value) {
  return s.op("AssignSub", {reference, value});
}

}  // namespace tagflow::graph::ops
