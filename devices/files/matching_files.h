// The files that patterns match.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/host_access.h"

namespace tagflow::devices {

// The existing files and folders that `pattern` matches, sorted, with the names
// that the graph gives them. Each part of a path may have the wildcards *, ?
// and [...], which a slash does not match; a backslash takes a wildcard's
// meaning away. What the host must not read is not found; PermissionDenied if
// the pattern asks for it without wildcards. InvalidArgument for a zero byte.
// Stops, with what it has found, once `is_over()`. Thread-safe.
Result<std::vector<std::string>> matching_files(
    const HostAccess& host, const std::string& pattern,
    const std::function<bool()>& is_over);

}  // namespace tagflow::devices
