// Whole files, read and written in one go.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::io {

// No file that the applications read may be larger: 8 GiB.
inline constexpr std::size_t kMaxFileBytes = std::size_t{8} << 30;

// The bytes of a regular file. NotFound where there is none, PermissionDenied
// where it cannot be opened, InvalidArgument where it is a folder or a device,
// ResourceExhausted where it is larger than `limit`. Thread-safe.
Result<std::string> read_file(const std::filesystem::path& path,
                              std::size_t limit = kMaxFileBytes);

// That write_file() may do what it is to: asked before work whose result it
// takes. Errors as there. Thread-safe.
Status check_writable(const std::filesystem::path& path);

// Creates the file, or replaces it as one step, so that a reader has the old
// bytes or the new ones; a link stays a link. Where no other file can take its
// place, as in a folder that cannot be written to, and for devices and pipes,
// it writes in place: an error may then leave part of it, or nothing. NotFound
// where its folder is not there, PermissionDenied where it cannot be opened,
// DataLoss where not every byte was written. Thread-safe for different paths.
Status write_file(const std::filesystem::path& path, std::string_view bytes);

// Makes the folder and those above it. PermissionDenied where it cannot.
Status make_folder(const std::filesystem::path& path);

}  // namespace tagflow::io
