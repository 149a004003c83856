// Small files of a cluster's configuration, read in one go.
#pragma once

#include <filesystem>
#include <string>

#include "graph/status.h"

namespace tagflow::net {

enum class Readers : uint8_t { kAnybody, kOwner };

// The bytes of a regular file. NotFound; PermissionDenied if it cannot be
// opened, or is for its owner alone and others may read or write it;
// InvalidArgument if it is a folder, a pipe or a device; ResourceExhausted if
// it has more bytes than `most`. Errors name the file. Thread-safe.
Result<std::string> read_small_file(const std::filesystem::path& path,
                                    size_t most, Readers readers);

}  // namespace tagflow::net
