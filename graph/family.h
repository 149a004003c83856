// Families of ops: the entries of the tables of their definitions, kernels and
// gradient rules, which cmake/families.txt lists.
#pragma once

#include <string_view>

namespace tagflow {

// What one family adds to a registry.
template <class Registry>
struct Family {
  std::string_view name;
  void (*add)(Registry&);
};

}  // namespace tagflow
