// Whole files, read and written in one go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::io {

// The limit on files that the applications read: 8 GiB.
inline constexpr std::size_t kMaxFileBytes = std::size_t{8} << 30;

// Whether a pipe is read like a file. That waits until somebody writes to it,
// and a signal that a handler catches does not end the wait.
enum class Pipes : uint8_t { kRefused, kRead };

// The bytes of a regular file. Returns NotFound if it does not exist,
// PermissionDenied if it cannot be opened, InvalidArgument if it is a
// folder, a device or a pipe that is refused, and ResourceExhausted if it is
// larger than `limit`. Thread-safe.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t limit = kMaxFileBytes,
                              Pipes pipes = Pipes::kRefused);

// Checks that write_file() can write the file, before work whose result it
// writes. Returns the same errors. Thread-safe.
Status check_writable(const std::filesystem::path& path);

// Creates the file, or replaces it atomically, so that a reader gets the old
// bytes or the new ones; a link stays a link. If the file cannot be
// replaced, as in a folder without write permission, and for devices and pipes,
// it writes in place: an error may then leave part of it, or nothing. Returns
// NotFound if its folder does not exist, PermissionDenied if it cannot be
// opened, ResourceExhausted if there is no room for it, and DataLoss if not
// every byte was written for another reason. Thread-safe for different paths.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

// Makes the folder and its parents. Returns PermissionDenied, or
// ResourceExhausted if there is no room for them.
Status make_folder(const std::filesystem::path& path);

}  // namespace tagflow::io
