// The header of a safetensors file:
//
//   the header's length (8 bytes, little-endian) | the header | the data
//
// The header is JSON, {"name": {"dtype": "F32", "shape": [2, 3],
// "data_offsets": [0, 24]}, "__metadata__": {"key": "text"}}, and may begin and
// end with spaces. The offsets, of the first byte and past the last one, count
// from the start of the data. Elements are row-major and little-endian.
//
// This reader accepts the headers that the format's own library accepts, and
// refuses those that it refuses. So a tensor may have other fields, which are
// ignored; of two tensors with one name the last is taken, and so of two keys
// in the metadata, which may be null. It is stricter in three points: a tensor
// has kMaxRank dimensions at most, each below 2^63, and it and its type are
// written as above (the library also takes ["F32", [2, 3], [0, 24]] for a
// tensor, and {"F32": null} for a type).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// The maximum length of a header; all readers of the format reject longer ones.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string type;  // the format's name: "F32"
  Shape shape;
  uint64_t begin = 0, end = 0;  // in the data

  // kInvalid for a type that we do not support.
  DataType dtype() const;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their places
  std::vector<std::pair<std::string, std::string>> metadata;
};

// For a file with so many bytes of data. InvalidArgument if the text is not
// such a header: it is not JSON, a field is repeated or missing, a type is
// unknown, sizes do not match the shape, or bytes belong to no tensor or to
// two. Thread-safe.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                   uint64_t data_bytes);
// Padded, so that the data are aligned to 8 bytes. InvalidArgument if a name
// is not UTF-8. Thread-safe.
Result<std::string> format_safetensors_header(const SafetensorsHeader& header);

// "F32" for float; empty for a type that the format does not have.
std::string_view safetensors_type(DataType dtype);

}  // namespace tagflow::checkpoint
