// ScopedVariable: what VariableScope::get() gives (variable_scope.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/builder/ops_state.h"
#include "graph/builder/scope.h"

namespace tagflow::graph {

// A variable of the graph that is a whole variable, or a slice of one.
struct VariablePart {
  std::string name;  // "a/w", or "a/w/part_0"
  ops::Variable variable;
  Output initializer;           // an operation that assigns the initial value
  std::vector<int64_t> offset;  // in the whole
  Shape shape;
};

// What get() gives. A value: copies mean the same variable. Invalid after an
// error; then what is asked of it is harmless.
class ScopedVariable {
 public:
  ScopedVariable() = default;
  bool valid() const { return data_ != nullptr; }
  // With the names of its scopes, as checkpoints have it.
  const std::string& name() const;
  DataType dtype() const;
  const Shape& shape() const;
  bool trainable() const;
  // One, or the slices in order. None where values take the place of variables.
  const std::vector<VariablePart>& parts() const;
  bool is_partitioned() const;
  // Along which the parts follow one another; 0 of a whole one.
  int partition_axis() const;

  // The value of the moment when this runs; that of the slices, put together.
  Output read(const Scope& s) const;
  // An operation that assigns a value of the whole shape to all parts.
  Output assign(const Scope& s, const Input& value) const;
  // What SaveV2 and RestoreV2 call shape_and_slices: empty of a whole variable,
  // "10 4 0,5:0,4" of rows 0 to 4 of ten. REQUIRES: part < parts().size()
  std::string shape_and_slice(size_t part) const;

 private:
  friend class VariableScope;
  friend class VariableMaker;  // internal
  struct Data;
  std::shared_ptr<const Data> data_;
};

}  // namespace tagflow::graph
