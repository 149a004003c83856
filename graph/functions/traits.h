// What calls of functions may do beside giving results.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/function.h"
#include "graph/functions/instance.h"

namespace tagflow::graph {

struct Traits {
  // Nodes that run for what they do: stateful ones, and those that the
  // function names.
  bool has_effects = false;
  // A result may be dead though no argument is: there are primitives of
  // control flow.
  bool may_die = false;

  bool operator==(const Traits&) const = default;
};

// Those of a library's functions, found out when they are asked for: a program
// that calls a few of many costs by these. A function that is not named, but
// given as an attribute, counts where that attribute gets its value.
class LibraryTraits {
 public:
  explicit LibraryTraits(FunctionLibrary library)
      : library_(std::move(library)) {}

  // Of all that a node of that op and those attributes may call.
  Traits of(std::string_view op, const AttrMap& attrs);
  Traits of(const FunctionInstance& function);
  // How many functions it has looked at.
  size_t num_known() const { return traits_.size(); }

 private:
  // Finds out about the function and all that it reaches.
  void learn(std::string_view name);

  const FunctionLibrary library_;
  std::unordered_map<std::string_view, Traits> traits_;  // by function
};

}  // namespace tagflow::graph
