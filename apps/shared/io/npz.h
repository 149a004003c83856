// The .npz format of numpy: a zip archive of .npy files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::io {

// The array of this name, which is that of its file in the archive without
// ".npy". Returns NotFound if the archive does not have it, with the names that
// it has, or does not exist; ResourceExhausted for an array beyond
// kMaxFileBytes; DataLoss for an archive or array that is damaged, or that
// claims to be compressed more than any is; otherwise the errors of
// parse_npy(). Thread-safe.
Result<Tensor> read_npz(const std::filesystem::path& path,
                        const std::string& name);

// Writes the arrays, uncompressed, as numpy.savez() does. Returns the errors of
// format_npy() and write_file(), and InvalidArgument if two have one name, or
// there is none.
// Thread-safe for different paths.
using NamedTensor = std::pair<std::string, Tensor>;
Status write_npz(const std::filesystem::path& path,
                 std::span<const NamedTensor> arrays);

}  // namespace tagflow::io
