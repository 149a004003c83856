// A function of the library with its attributes bound: what a call means.
#pragma once

#include <string>
#include <vector>

#include "graph/function.h"
#include "graph/limits.h"

namespace tagflow::graph {

// What a function becomes where it is expanded in place.
struct Expansion {
  std::vector<NodeDef> nodes;
  // Per argument the Identity that stands for it.
  std::vector<std::string> args;
  // Per result the tensor that gives it: "name:port".
  std::vector<std::string> results;
  // Nodes that must run whenever the function is called: stateful ones, and
  // those that the function names.
  std::vector<std::string> effects;
  // The same inside loops of the body's own; the Exits of such loops are among
  // the `effects`, for who waits for these.
  std::vector<std::string> inner_effects;
};

// Where a function is expanded.
struct Site {
  // Nodes are named `prefix` and a slash and their own name.
  std::string prefix;
  std::string device;                 // of nodes that name none
  std::vector<std::string> args;      // tensors: "name:port"
  std::vector<std::string> controls;  // nodes that the arguments wait for
  // A node for the body's sources to wait for; empty: they wait for all
  // arguments.
  std::string pivot;
  // Per argument, whether it is there even where the body is not to run, as a
  // loop constant is: then what depends on such alone waits for the pivot,
  // too. Empty: none is.
  std::vector<bool> always_there;
};

// Thread-compatible. Valid while the library is.
class FunctionInstance {
 public:
  // NotFound where the library has no such function; InvalidArgument where
  // its attributes are incomplete, or types of arguments cannot be told.
  // ResourceExhausted where functions nest too deep in these, as in those of a
  // recursion that wraps a function into another in each call.
  static Result<FunctionInstance> bind(const FunctionLibrary& library,
                                       const FunctionRef& reference,
                                       const Limits& limits = {});

  const FunctionDef& function() const { return *function_; }
  const std::string& name() const { return function_->name(); }
  // All that its body can see of its caller's attributes.
  const AttrMap& attrs() const { return attrs_; }
  const std::vector<DataType>& arg_types() const { return arg_types_; }
  const std::vector<DataType>& result_types() const { return result_types_; }
  // Per result the argument that it is, unchanged; -1 where it is none.
  std::vector<int> passed_arguments() const;
  // InvalidArgument about the body: a name, output or attribute that does not
  // exist.
  Result<Expansion> expand(const Site& site, const Limits& limits = {}) const;

 private:
  class Expander;

  const FunctionLibrary* library_ = nullptr;
  const FunctionDef* function_ = nullptr;
  AttrMap attrs_;
  std::vector<DataType> arg_types_;
  std::vector<DataType> result_types_;
};

// The same function of the same library, with the same attributes.
bool operator==(const FunctionInstance& a, const FunctionInstance& b);
// Of equal ones equal.
size_t hash_of(const FunctionInstance& instance);

}  // namespace tagflow::graph
