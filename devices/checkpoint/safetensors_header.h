// The header of a safetensors file:
//
//   the header's length (8 bytes, little-endian) | the header | the data
//
// The header is JSON, {"name": {"dtype": "F32", "shape": [2, 3],
// "data_offsets": [0, 24]}, "__metadata__": {"key": "text"}}, and may end with
// spaces. The offsets, of the first byte and behind the last one, count from
// where the data begin. Elements are row-major and little-endian.
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

// Longer headers are refused, as by everybody who reads the format.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  std::string type;  // the format's name: "F32"
  Shape shape;
  uint64_t begin = 0, end = 0;  // in the data

  // kInvalid for a type that no tensor of ours has.
  DataType dtype() const;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by place
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Of a file with so many bytes of data. InvalidArgument where the text is not
// such a header: no JSON, a name or field twice, unknown fields or types, sizes
// that do not fit the shape, bytes that belong to no tensor or to two.
// Thread-safe.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                   uint64_t data_bytes);
// Padded, so that the data are aligned to 8 bytes. InvalidArgument where a name
// is no UTF-8. Thread-safe.
Result<std::string> format_safetensors_header(const SafetensorsHeader& header);

// "F32" of float; empty for a type that the format does not have.
std::string_view safetensors_type(DataType dtype);

}  // namespace tagflow::checkpoint
