#include "devices/memory_stats.h"

#include <doctest/doctest.h>

#include <limits>

namespace tagflow::devices {

TEST_CASE("bytes are written with one decimal, in the largest unit that fits") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1 KiB");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text((int64_t(1) << 20) - 1) == "1 MiB");
  CHECK(bytes_text(int64_t(64) << 20) == "64 MiB");
  CHECK(bytes_text(int64_t(12.3 * (1 << 20))) == "12.3 MiB");
  CHECK(bytes_text(std::numeric_limits<int64_t>::max()) == "8 EiB");
}

TEST_CASE("statistics read as a sentence") {
  MemoryStats stats;
  CHECK(to_string(stats) == "0 B in use, peak 0 B, 0 buffers");
  stats = {.in_use = 512, .peak = 2048, .limit = 4096, .count = 9, .live = 1};
  CHECK(to_string(stats) == "512 B in use of 4 KiB, peak 2 KiB, 1 buffer");
  stats.swapped_out = 3072;
  stats.swapped_in = 1024;
  CHECK(to_string(stats) ==
        "512 B in use of 4 KiB, peak 2 KiB, 1 buffer, 3 KiB swapped out, 1 KiB "
        "back");
  stats.host_is_short = true;
  CHECK(to_string(stats).ends_with(
      "1 KiB back, and the host has no memory for more"));
}

}  // namespace tagflow::devices
