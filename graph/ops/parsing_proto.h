// Where the ops of protobuf messages have their descriptors from: the attribute
// descriptor_source.
#pragma once

#include <string_view>

namespace tagflow::graph {

inline constexpr std::string_view kLocalSource = "local://";
inline constexpr std::string_view kBytesSource = "bytes://";

// The descriptors are those of the program.
inline bool is_local_source(std::string_view source) {
  return source.empty() || source == kLocalSource;
}
// The source is the path of a file.
inline bool is_file_source(std::string_view source) {
  return !is_local_source(source) && !source.starts_with(kBytesSource);
}

}  // namespace tagflow::graph
