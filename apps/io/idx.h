// The IDX format of the MNIST data sets, plain or compressed with gzip.
//
// Layout, big-endian: two zero bytes, the type of the elements (0x08 is
// unsigned bytes, the one that is read), the rank, each dimension in 4 bytes,
// the elements.
#pragma once

#include <filesystem>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::io {

// The array of the file, as uint8. NotFound where there is no such file,
// InvalidArgument for another format or type, DataLoss where the file is cut
// short or damaged, ResourceExhausted for more than 2 GiB of elements.
// Memory grows with what the file really has. Thread-safe.
Result<Tensor> read_idx(const std::filesystem::path& path);

}  // namespace tagflow::io
