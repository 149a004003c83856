// Which files the loader of a model may read, if a policy limits its graph.
#pragma once

#include <filesystem>

#include "graph/op_policy.h"
#include "graph/status.h"

namespace tagflow::graph {

// Where links of the model's `file` may lead if the ops of its graph may read
// `reads`: to files in that scope, or in the model's own folder, which need not
// be in the scope. Both paths are absolute. Thread-safe.
FileScope scope_of_model(const std::filesystem::path& folder,
                         const std::filesystem::path& file,
                         const FileScope& reads);

// PermissionDenied if `model` is the folder of a SavedModel, and a link leads
// from the file of its graph out of that scope. The caller has named any other
// path, and may read it. Called before load_file(). Thread-safe.
Status check_model_file(const std::filesystem::path& model,
                        const FileScope& reads);

}  // namespace tagflow::graph
