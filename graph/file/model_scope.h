// Which files the loader of a model may read, if a policy limits its graph.
#pragma once

#include <filesystem>
#include <string>

#include "graph/op_policy.h"
#include "graph/status.h"

namespace tagflow::graph {

// The path to open for a file of a model: each may be, or be a link to, a file
// in `reads`, which the ops of its graph may read, or one in the model's own
// folder, which need not be in that scope. Both paths are absolute.
// PermissionDenied, with the path and the folder, if it is in neither; other
// errors are those of FileScope::resolve(). Thread-safe.
Result<std::string> resolve_model_file(const std::filesystem::path& folder,
                                       const std::filesystem::path& file,
                                       const FileScope& reads);

// PermissionDenied if `model` is the folder of a SavedModel, and a link leads
// from the file of its graph to where resolve_model_file() refuses it. The
// caller has named any other path, and may read it, also if it is a link.
// Called before load_file(). Thread-safe.
Status check_model_file(const std::filesystem::path& model,
                        const FileScope& reads);

}  // namespace tagflow::graph
