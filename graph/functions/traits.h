// What calls of functions may do beside giving results.
#pragma once

#include <string_view>
#include <unordered_map>

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

// Those of all functions of a library. A function that is not named, but given
// as an attribute, counts where that attribute gets its value.
class LibraryTraits {
 public:
  explicit LibraryTraits(const FunctionLibrary& library);

  // Of all that a node of that op and those attributes may call.
  Traits of(std::string_view op, const AttrMap& attrs) const;
  Traits of(const FunctionInstance& function) const;

 private:
  std::unordered_map<std::string_view, Traits> traits_;  // by function
};

}  // namespace tagflow::graph
