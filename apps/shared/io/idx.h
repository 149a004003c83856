// The IDX format of the MNIST data sets, plain or compressed with gzip.
//
// Layout, big-endian: two zero bytes, the type of the elements (only 0x08,
// unsigned bytes, is supported), the rank, each dimension in 4 bytes, the
// elements.
#pragma once

#include <filesystem>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::io {

// The array of the file, as uint8. Returns NotFound if the file does not
// exist, InvalidArgument for another format or type, DataLoss if the file is
// truncated or damaged, and ResourceExhausted for more than 2 GiB of elements.
// Allocates memory only as data is read. Thread-safe.
Result<Tensor> read_idx(const std::filesystem::path& path);

}  // namespace tagflow::io
