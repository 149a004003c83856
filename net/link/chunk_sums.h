// ChunkSums: which bytes of an object a bulk link checks.
#pragma once

#include <string_view>

namespace tagflow::net {

// Over a local door, the bytes of an object stay in the memory of one machine,
// as they do when a device copies them. So there the checksum of a chunk covers
// all but these: making it took a third of the time of a large tensor. TLS has
// a code of its own for every byte.
enum class ChunkSums { kAll, kWithoutBytes };

// The part of an object's bytes that a checksum covers.
inline std::string_view summed(ChunkSums sums, std::string_view bytes) {
  return sums == ChunkSums::kAll ? bytes : std::string_view();
}

}  // namespace tagflow::net
