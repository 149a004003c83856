// What an allocator has given out.
#pragma once

#include <cstdint>
#include <string>

namespace tagflow::devices {

// Taken while others allocate, the numbers may be of slightly different times.
struct MemoryStats {
  int64_t in_use = 0;  // bytes
  int64_t peak = 0;    // bytes, the largest in_use so far
  int64_t limit = 0;   // bytes; 0: none
  int64_t count = 0;   // buffers given out so far
  int64_t live = 0;    // buffers that are in use now
};

// "12.3 MiB in use of 64 MiB, peak 20 MiB, 17 buffers"; without a limit "12.3
// MiB in use, ...".
std::string to_string(const MemoryStats& stats);

// "512 B", "64 MiB", "12.3 GiB": one decimal, where it is not zero.
std::string bytes_text(int64_t bytes);

}  // namespace tagflow::devices
