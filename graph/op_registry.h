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

// Whether a node with these attributes uses files: opens, lists, makes, changes
// or removes those that its inputs or attributes name. Attributes of a function
// may lack defaults, and may be placeholders.
using FileUse = bool (*)(const AttrMap& attrs);
// The FileUse of an op whose nodes all use files.
bool always_uses_files(const AttrMap& attrs);

// Thread-safe. Definitions are never removed: pointers stay valid.
class OpRegistry {
 public:
  // The registry with every op of graph/ops; programs add their own ops.
  static OpRegistry& global();
  // Empty, for tests.
  OpRegistry() = default;

  // AlreadyExists if the name is taken; InvalidArgument if a text of the
  // definition is malformed, or an op that is not built in is fusible
  // (OpDefBuilder::fusible()). An op whose kernels use files must say so: see
  // OpPolicy, and files_of() in devices/files/host_access.h.
  Status add(OpDef def, FileUse file_use = nullptr);
  // For the built-in tables: such an error ends the process. Once global() has
  // all of these, it throws the error as a std::invalid_argument instead, so
  // that an op library that calls this fails to load with it.
  void add(OpDefBuilder builder, FileUse file_use = nullptr);
  // Unimplemented for an unknown op; the message gives the nearest name.
  Result<const OpDef*> find(std::string_view name) const;
  // Null if there is none.
  const OpDef* find_or_null(std::string_view name) const;
  // Whether a node with this op and these attributes uses files. False for an
  // unknown op.
  bool uses_files(std::string_view op, const AttrMap& attrs) const;
  // All names, sorted.
  std::vector<std::string> names() const;

 private:
  mutable std::shared_mutex mutex_;
  bool has_own_ops_ = false;  // all of graph/ops are added
  std::unordered_map<std::string_view, std::unique_ptr<const OpDef>> ops_;
  std::unordered_map<std::string_view, FileUse> file_uses_;  // of some ops
};

// The name in `names` closest to `wanted` by edit distance, or "" if none is
// close enough to suggest.
std::string nearest_name(std::string_view wanted,
                         const std::vector<std::string>& names);

}  // namespace tagflow::graph
