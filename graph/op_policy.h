// OpPolicy: which ops the graph of a session may have, and which files they may
// use. Programs that run the graphs of strangers set it.
//
//   auto model = actors::SavedModel::load(
//       folder, {.policy = graph::OpPolicy::stranger(folder)});
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "graph/status.h"

namespace tagflow::graph {

class FunctionLibrary;  // graph/function.h
class Graph;            // graph/graph.h
struct NodeDef;         // graph/node.h

// The files that the ops of a graph may use: all, none, or those beneath a
// folder. Thread-compatible.
class FileScope {
 public:
  static FileScope everywhere() { return {}; }
  static FileScope nowhere();
  // The folder `root`, whose path may have links, and what is beneath it. A
  // relative `root` begins at the working directory, a relative path of an op
  // at `root`.
  static FileScope beneath(const std::string& root);

  bool is_everywhere() const { return kind_ == Kind::kEverywhere; }
  bool is_nowhere() const { return kind_ == Kind::kNowhere; }
  // Empty unless the scope is a folder.
  const std::string& root() const { return root_; }

  // The path to open for a path of an op: the same everywhere, and beneath a
  // folder the one to which links and ".." lead. PermissionDenied, with the
  // path and the folder, if it is not in the scope; InvalidArgument if it has a
  // zero byte, or a name is too long; NotFound if links have no end.
  Result<std::string> resolve(const std::string& path) const;
  // The same for a file that is made, renamed or removed: a link of this name
  // is not followed, only those on the way to its folder. InvalidArgument, too,
  // if a path beneath a folder does not end with a name.
  Result<std::string> resolve_name(const std::string& path) const;

 private:
  enum class Kind : uint8_t { kEverywhere, kBeneath, kNowhere };

  // Resolves a part of the path; messages name the whole of it.
  Result<std::string> resolve_part(const std::string& path,
                                   const std::string& part) const;

  Kind kind_ = Kind::kEverywhere;
  std::string root_;
};

// Ops that tagflow itself adds to a graph, as for a gradient, are not checked:
// none of them uses files. Thread-compatible.
struct OpPolicy {
  using Names = std::set<std::string, std::less<>>;

  // The only ops that nodes may have; nullopt: all.
  std::optional<Names> allowed;
  // Ops that nodes must not have, even if `allowed` has them.
  Names denied;
  // The files that ops may read, and those that they may make, change, move or
  // remove. If both are nowhere, a graph must not have an op that uses files,
  // as OpRegistry::uses_files() says; otherwise each path is checked when its
  // node runs.
  FileScope reads;
  FileScope writes;

  // For a model that somebody else made: its ops may read the files in its
  // folder, as its assets and its checkpoint, and write none.
  static OpPolicy stranger(const std::string& model_folder);

  // InvalidArgument if a name is not that of an op, or a root is not a folder.
  // Op libraries must be loaded before.
  Status validate() const;
  // PermissionDenied for the first node of the graph, or of any function of its
  // library, that the policy refuses. The message names the node, its op and
  // the function, and says what would allow it.
  Status check(const Graph& graph) const;
  Status check(std::span<const NodeDef> nodes,
               const FunctionLibrary& library) const;
};

}  // namespace tagflow::graph
