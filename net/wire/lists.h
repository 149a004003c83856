// Lists of messages: a count, and as many elements.
#pragma once

#include <cstdint>
#include <vector>

#include "net/wire/bytes.h"

namespace tagflow::net {

// Calls read_one(reader) as often as a count says. Each element has
// `least_bytes` or more, so that a count beyond what is left takes no memory.
template <class T, class F>
std::vector<T> read_list(Reader& reader, uint64_t least_bytes, F read_one) {
  std::vector<T> list;
  const uint64_t count = reader.count(least_bytes, sizeof(T));
  list.reserve(count);
  for (uint64_t i = 0; i < count && reader.ok(); ++i)
    list.push_back(read_one(reader));
  return list;
}

// Calls write_one(element) for each, behind their count.
template <class T, class F>
void write_list(Writer& writer, const std::vector<T>& list, F write_one) {
  writer.varint(list.size());
  for (const T& one : list) write_one(one);
}

}  // namespace tagflow::net
