// A function of the library with its attributes bound: the target of a call.
#pragma once

#include <string>
#include <vector>

#include "graph/function.h"
#include "graph/limits.h"

namespace tagflow::graph {

// The result of expanding a function in place.
struct Expansion {
  std::vector<NodeDef> nodes;
  // For each argument the Identity that represents it.
  std::vector<std::string> args;
  // For each result the tensor that provides it: "name:port".
  std::vector<std::string> results;
  // Nodes that must run whenever the function is called: stateful ones, and
  // control outputs of the function.
  std::vector<std::string> effects;
  // Such nodes inside loops of the body. The Exits of such loops are among the
  // `effects`, for nodes that wait for them.
  std::vector<std::string> inner_effects;
};

// The place where a function is expanded.
struct Site {
  // Nodes are named `prefix`, a slash and their own name.
  std::string prefix;
  std::string device;                 // of nodes without a device
  std::vector<std::string> args;      // tensors: "name:port"
  std::vector<std::string> controls;  // nodes that the arguments wait for
  // A node for which the body's sources wait; if empty, they wait for all
  // arguments.
  std::string pivot;
  // For each argument, whether it is present even if the body does not run,
  // such as a loop constant. Nodes that depend only on such arguments wait for
  // the pivot too. Empty: none is.
  std::vector<bool> always_there;
};

// Thread-compatible. Valid as long as the library is.
class FunctionInstance {
 public:
  // NotFound if the library has no such function; InvalidArgument if its
  // attributes are incomplete, or types of arguments cannot be determined;
  // ResourceExhausted if functions are nested too deeply in the attributes, as
  // in a recursion that wraps a function into another in each call.
  static Result<FunctionInstance> bind(const FunctionLibrary& library,
                                       const FunctionRef& reference,
                                       const Limits& limits = {});

  const FunctionDef& function() const { return *function_; }
  const std::string& name() const { return function_->name(); }
  // All attributes of the caller that its body can use.
  const AttrMap& attrs() const { return attrs_; }
  const std::vector<DataType>& arg_types() const { return arg_types_; }
  const std::vector<DataType>& result_types() const { return result_types_; }
  // For each result the argument that it returns unchanged; -1 if there is
  // none.
  std::vector<int> passed_arguments() const;
  // InvalidArgument if the body refers to a name, output or attribute that does
  // not exist.
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
// Equal instances have equal hashes.
size_t hash_of(const FunctionInstance& instance);

}  // namespace tagflow::graph
