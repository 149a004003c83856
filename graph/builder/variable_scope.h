// VariableScope: variables with nested names, as in TensorFlow 1. Functions of
// a program share weights by requesting the same name.
//
//   const VariableScope vars;                       // of the program
//   const auto layer = [&](const VariableScope& vars, const Output& x) {
//     const Output w = vars.get(s, "w", {64, 64}).read(s);
//     return ops::tanh(s, ops::matmul(s, x, w));
//   };
//   Output y = layer(vars.sub_scope("a"), x);  // makes "a/w"
//   Output z = layer(vars.sub_scope("a").with_reuse(Reuse::kAlways), y);
//   Output init = vars.initialize(s);  // an operation: run it once
//
// Variables are made outside of all loops and branches, with the device and
// attributes of the Scope of the first request. Their names, which checkpoints
// use, do not depend on names of ops. Thread-compatible; all scopes over one
// set of variables count as one object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder/initializers.h"
#include "graph/builder/partitioners.h"
#include "graph/builder/scope.h"
#include "graph/builder/scoped_variable.h"

namespace tagflow::graph {

// What get() does if the name exists or not.
enum class Reuse : uint8_t {
  kNever,   // makes a variable; an error if it exists
  kAlways,  // returns the variable; an error if it does not exist
  kAuto,    // returns it, or makes it if it does not exist
};

struct VariableOptions {
  DataType dtype = DataType::kFloat;
  // If omitted, that of the scope, or glorot_uniform() for floating-point types
  // and zeros() for others.
  Initializer initializer = {};
  bool trainable = true;
  // If omitted, that of the scope, or one piece. Scalars are never partitioned.
  Partitioner partitioner = {};
  // Collections that contain the variable, in addition to "variables" and, if
  // it is trainable, "trainable_variables".
  std::vector<std::string> collections = {};
};

class VariableScope {
 public:
  // The outermost scope of a new set of variables, all of one graph.
  VariableScope();

  // "" for the outermost one, otherwise "a/b".
  const std::string& name() const { return name_; }
  // Names of variables begin with "name/". A second call returns the same
  // scope.
  VariableScope sub_scope(std::string_view name) const;
  // As sub_scope(), with the first of "name", "name_1", ... that is unused
  // here.
  VariableScope unique_scope(std::string_view name) const;
  // Applies to this scope and those that are derived from it, as all below.
  VariableScope with_reuse(Reuse reuse) const;
  VariableScope with_initializer(Initializer initializer) const;
  VariableScope with_partitioner(Partitioner partitioner) const;
  // Replaces variables: if one is requested, `value` makes a replacement by its
  // full name, such as a constant of a trained model. Called once per name.
  using ValueFn = std::function<Output(const Scope&, const std::string& name,
                                       const Shape&, DataType)>;
  VariableScope with_values(ValueFn value) const;

  // The variable "scope/name". On an error `s` fails: AlreadyExists or NotFound
  // according to Reuse; InvalidArgument if an existing variable has another
  // type, shape or partition, or if it cannot be made.
  ScopedVariable get(const Scope& s, std::string_view name, const Shape& shape,
                     const VariableOptions& options = {}) const;

  // The variables of all scopes of the set that are in the collection, in order
  // of creation: "variables" has all.
  std::vector<ScopedVariable> collection(std::string_view name) const;
  std::vector<ScopedVariable> variables() const;
  std::vector<ScopedVariable> trainable_variables() const;

  // An operation that assigns their initial values to all existing variables.
  Output initialize(const Scope& s) const;
  // Operations that write them to a checkpoint, and restore them. Partitioned
  // variables are saved as slices, which can be restored whole or in other
  // slices. `prefix` is a string scalar.
  Output save(const Scope& s, const Input& prefix) const;
  Output restore(const Scope& s, const Input& prefix) const;

 private:
  struct Store;

  Result<ScopedVariable> find_or_make(const Scope& s, std::string name,
                                      const Shape& shape,
                                      VariableOptions options) const;

  std::shared_ptr<Store> store_;
  std::string name_;
  Reuse reuse_ = Reuse::kNever;
  Initializer initializer_;
  Partitioner partitioner_;
  ValueFn value_;
};

}  // namespace tagflow::graph
