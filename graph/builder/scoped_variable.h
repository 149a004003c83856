// ScopedVariable: the result of VariableScope::get() (variable_scope.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/builder/ops_variable.h"
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

// The result of get(). A value: copies refer to the same variable. Invalid
// after an error; then its functions are harmless.
class ScopedVariable {
 public:
  ScopedVariable() = default;
  bool valid() const { return data_ != nullptr; }
  // Including the names of its scopes, as in checkpoints.
  const std::string& name() const;
  DataType dtype() const;
  const Shape& shape() const;
  bool trainable() const;
  // One part, or the slices in order. Empty if a value replaces the variable.
  const std::vector<VariablePart>& parts() const;
  bool is_partitioned() const;
  // The dimension along which it is partitioned; 0 for a whole one.
  int partition_axis() const;

  // The value at the time when the op runs; slices are concatenated.
  Output read(const Scope& s) const;
  // An operation that assigns a value of the whole shape to all parts.
  Output assign(const Scope& s, const Input& value) const;
  // The value of shape_and_slices for SaveV2 and RestoreV2: empty for a whole
  // variable, "10 4 0,5:0,4" for rows 0 to 4 of ten. REQUIRES: part <
  // parts().size()
  std::string shape_and_slice(size_t part) const;

 private:
  friend class VariableScope;
  friend class VariableMaker;  // internal
  struct Data;
  std::shared_ptr<const Data> data_;
};

}  // namespace tagflow::graph
