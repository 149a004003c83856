// Statistics of an allocator.
#pragma once

#include <cstdint>
#include <string>

namespace tagflow::devices {

// While others allocate, the numbers may be of slightly different times.
struct MemoryStats {
  int64_t in_use = 0;  // bytes
  int64_t peak = 0;    // bytes, the largest in_use so far
  int64_t limit = 0;   // bytes; 0: none
  int64_t count = 0;   // buffers allocated so far
  int64_t live = 0;    // buffers in use now
  // Bytes of values in stacks that were copied to the host because memory was
  // short, and back, so far: see devices/swapper.h.
  int64_t swapped_out = 0;
  int64_t swapped_in = 0;
  bool host_is_short = false;  // the host had no memory for such a value
};

// "12.3 MiB in use of 64 MiB, peak 20 MiB, 17 buffers"; without a limit "12.3
// MiB in use, ...". Swapped bytes, if any, follow: ", 3 MiB swapped out, 2 MiB
// back", and ", and the host has no memory for more".
std::string to_string(const MemoryStats& stats);

// "512 B", "64 MiB", "12.3 GiB": one decimal, unless it is zero.
std::string bytes_text(int64_t bytes);

}  // namespace tagflow::devices
