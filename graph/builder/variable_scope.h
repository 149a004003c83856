// VariableScope: variables by names that nest, as TensorFlow 1 has them, so
// that functions of a program share weights by asking for them again.
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
// attributes of the Scope that asked first. Their names, by which checkpoints
// have them, do not depend on the names of its ops. Thread-compatible, with all
// scopes over one set of variables as one object.
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

// What get() does about a name.
enum class Reuse : uint8_t {
  kNever,   // makes a variable; it is an error that there is one
  kAlways,  // gives the variable; it is an error that there is none
  kAuto,    // gives it, or makes it where there is none
};

struct VariableOptions {
  DataType dtype = DataType::kFloat;
  // Left out: that of the scope, or else glorot_uniform() of floating-point
  // numbers and zeros() of others.
  Initializer initializer = {};
  bool trainable = true;
  // Left out: that of the scope, or else one piece. Scalars always are.
  Partitioner partitioner = {};
  // Collections that the variable is in beside "variables" and, where it is
  // trainable, "trainable_variables".
  std::vector<std::string> collections = {};
};

class VariableScope {
 public:
  // The outermost scope of a new set of variables, all of one graph.
  VariableScope();

  // "" outermost, else "a/b".
  const std::string& name() const { return name_; }
  // Names of variables begin with "name/". Opened twice, it is the same scope.
  VariableScope sub_scope(std::string_view name) const;
  // The same with the first of "name", "name_1", ... that nobody opened here.
  VariableScope unique_scope(std::string_view name) const;
  // Of this scope and those that are made from it, as all below.
  VariableScope with_reuse(Reuse reuse) const;
  VariableScope with_initializer(Initializer initializer) const;
  VariableScope with_partitioner(Partitioner partitioner) const;
  // No variables: where one is asked for, `value` gives what stands for it, by
  // its full name, such as a constant of a trained model. Called once a name.
  using ValueFn = std::function<Output(const Scope&, const std::string& name,
                                       const Shape&, DataType)>;
  VariableScope with_values(ValueFn value) const;

  // The variable "scope/name". On an error `s` fails: AlreadyExists or NotFound
  // as Reuse says; InvalidArgument where the variable that is there has another
  // type, shape or partition, or where it cannot be made.
  ScopedVariable get(const Scope& s, std::string_view name, const Shape& shape,
                     const VariableOptions& options = {}) const;

  // Those of all scopes of the set that are in the collection, in the order in
  // which they were made: "variables" has all.
  std::vector<ScopedVariable> collection(std::string_view name) const;
  std::vector<ScopedVariable> variables() const;
  std::vector<ScopedVariable> trainable_variables() const;

  // An operation that gives all variables made so far their initial values.
  Output initialize(const Scope& s) const;
  // Operations that write them to a checkpoint, and assign what one has; of
  // partitioned ones the slices, by which they can be restored whole or in
  // other slices. `prefix` is a string scalar.
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
