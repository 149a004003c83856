// Ops that no gradient leads through.
#pragma once

#include <algorithm>
#include <string_view>

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// Adds several ops without a derivative, separated by spaces, and the reason.
inline void no_gradient(RuleTable& table, std::string_view names,
                        std::string_view reason) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    table.add_none({names.substr(0, end)}, reason);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

// The rule of ops that passes make when a graph runs: an error.
inline void fused_rule(RuleContext& r) {
  r.fail(
      "it is in a graph that was compiled to run; differentiate the "
      "original graph");
}

}  // namespace tagflow::autodiff
