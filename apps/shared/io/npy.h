// The .npy format of numpy, versions 1.0 to 3.0: one array a file.
//
// Layout: the magic bytes "\x93NUMPY", the version (2 bytes), the length of
// the header (2 bytes little-endian in version 1, 4 in versions 2 and 3), the
// header, the elements; as for numpy, more bytes may follow. The header is a
// Python dict literal, in UTF-8 since version 3:
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// Supported: every numeric type, bool, half and complex, in either byte order
// and either element order; arrays of type "<V2" are read as bfloat16. Not
// supported: strings (see json_tensor.h), structures, Python objects.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "apps/shared/io/file.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::io {

// The array at the start of `bytes`. Returns InvalidArgument
// if the bytes are not a .npy file or hold a type that no tensor has, and
// DataLoss if elements are missing. Allocates no more than the bytes fill.
// Thread-safe.
Result<Tensor> parse_npy(std::string_view bytes);

// Version 1.0, little-endian, row-major. Quantized types are written as their
// storage_type(). Returns InvalidArgument for a type that the format does not
// have (string, resource, variant). Thread-safe.
Result<std::string> format_npy(const Tensor& tensor);

// As parse_npy() and format_npy(), from and to a file. They also return errors
// of read_file() and write_file(), with the path in the message.
Result<Tensor> read_npy(const std::filesystem::path& path,
                        Pipes pipes = Pipes::kRefused);
Status write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace tagflow::io
