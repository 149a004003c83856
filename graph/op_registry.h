// The table of ops, by name.
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/op_def.h"

namespace tagflow::graph {

// Thread-safe. Definitions are never removed: pointers stay valid.
class OpRegistry {
 public:
  // The registry with every op of graph/ops; programs add their own ops.
  static OpRegistry& global();
  // Empty, for tests.
  OpRegistry() = default;

  // AlreadyExists if the name is taken; InvalidArgument if a text of the
  // definition is malformed, or an op that is not built in is fusible
  // (OpDefBuilder::fusible()).
  Status add(OpDef def);
  // For the built-in tables: such an error ends the process. Once global() has
  // all of these, it throws the error as a std::invalid_argument instead, so
  // that an op library that calls this fails to load with it.
  void add(OpDefBuilder builder);
  // Unimplemented for an unknown op; the message gives the nearest name.
  Result<const OpDef*> find(std::string_view name) const;
  // Null if there is none.
  const OpDef* find_or_null(std::string_view name) const;
  // All names, sorted.
  std::vector<std::string> names() const;

 private:
  mutable std::shared_mutex mutex_;
  bool has_own_ops_ = false;  // all of graph/ops are added
  std::unordered_map<std::string_view, std::unique_ptr<const OpDef>> ops_;
};

// The name in `names` closest to `wanted` by edit distance, or "" if none is
// close enough to suggest.
std::string nearest_name(std::string_view wanted,
                         const std::vector<std::string>& names);

}  // namespace tagflow::graph
