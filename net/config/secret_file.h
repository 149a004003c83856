// The secret of a cluster, in a file that only its owner can read.
#pragma once

#include <filesystem>
#include <string>

#include "graph/status.h"
#include "net/link/socket.h"

namespace tagflow::net {

// The bytes of the file, without a newline at its end. PermissionDenied if
// others than its owner may read or write it; InvalidArgument if it is empty;
// ResourceExhausted if it has more than 4,096 bytes; others of
// read_small_file(). They name the file, and never what is in it. Thread-safe.
Result<std::string> read_secret(const std::filesystem::path& path);

// Draws a secret, and writes it to a new file, which takes the place of one
// that is there. If it cannot be made there, the error is that of
// secret_error(), and nothing is left there.
Status write_new_secret(const std::filesystem::path& path);
// Draws a secret, and writes it to an open file in the place of what it has.
// The path is for errors.
Status draw_secret(const Socket& file, const std::filesystem::path& path);

// Why a secret cannot be written, by errno: NotFound, ResourceExhausted or
// PermissionDenied.
Status secret_error(const std::filesystem::path& path, int number);

}  // namespace tagflow::net
