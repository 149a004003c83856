// Properties of calls of functions, besides their results.
#pragma once

#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/function.h"
#include "graph/functions/instance.h"

namespace tagflow::graph {

struct Traits {
  // Nodes that must run for their effects: stateful ones, and control outputs
  // of the function.
  bool has_effects = false;
  // A result may be dead even if no argument is: the body has primitives of
  // control flow.
  bool may_die = false;

  bool operator==(const Traits&) const = default;
};

// The traits of a library's functions, computed on demand, so a program pays
// only for the functions that it calls. A function that is not named, but
// passed as an attribute, counts where the attribute gets its value.
class LibraryTraits {
 public:
  explicit LibraryTraits(FunctionLibrary library)
      : library_(std::move(library)) {}

  // The traits of all that a node of that op and attributes may call.
  Traits of(std::string_view op, const AttrMap& attrs);
  Traits of(const FunctionInstance& function);
  // How many functions it has visited.
  size_t num_known() const { return traits_.size(); }

 private:
  // Visits the function and all functions that it reaches.
  void learn(std::string_view name);

  const FunctionLibrary library_;
  std::unordered_map<std::string_view, Traits> traits_;  // by function
};

}  // namespace tagflow::graph
