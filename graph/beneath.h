// Whether a path stays in a folder, links included.
#pragma once

#include <filesystem>

#include "graph/status.h"

namespace tagflow {

// The absolute path, without links, that `path` leads to, if it is `root` or
// lies beneath it. A relative path begins at `root`. Both may have links and
// "..", which are followed as the system does; only the place where they end
// counts. Files and folders at the end of the path need not exist yet.
//
// A link that somebody makes afterwards is not seen: the function protects from
// what a folder has, and not from a process that changes it meanwhile. The
// returned path avoids links that change.
//
// Returns PermissionDenied, which names the last link on the way, if the path
// leads outside, or if the system does not let us follow it; NotFound if there
// is no `root`, or links have no end; InvalidArgument if a name is too long or
// has a null character. Thread-safe.
Result<std::filesystem::path> resolve_beneath(
    const std::filesystem::path& root, const std::filesystem::path& path);

}  // namespace tagflow
