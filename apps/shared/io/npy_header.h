// The header of a .npy file; see npy.h. Internal to apps/shared/io.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dtype.h"
#include "graph/status.h"

namespace tagflow::io {

struct NpyHeader {
  DataType dtype = DataType::kInvalid;
  bool swap_bytes = false;     // the elements are big-endian
  bool fortran_order = false;  // the first dimension is the fastest
  std::vector<int64_t> dims;
};

// Parses the dict literal: the three keys, each once, in any order, then spaces
// and at most one newline. InvalidArgument names what was expected and where.
Result<NpyHeader> parse_npy_header(std::string_view text);

// The dict literal of a row-major little-endian array, without padding. Returns
// InvalidArgument if numpy has no such type.
Result<std::string> format_npy_header(const NpyHeader& header);

}  // namespace tagflow::io
