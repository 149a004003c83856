#include "devices/memory_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tagflow::devices {

std::string bytes_text(int64_t bytes) {
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  size_t unit = 0;
  double value = double(bytes) / 1024;
  // A value that would be rounded to 1024 is 1 of the next unit.
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::string number = fmt::format("{:.1f}", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number + " " + kUnits[unit];
}

std::string to_string(const MemoryStats& stats) {
  std::string text = bytes_text(stats.in_use) + " in use";
  if (stats.limit > 0) text += " of " + bytes_text(stats.limit);
  text += fmt::format(", peak {}, {} buffer{}", bytes_text(stats.peak),
                      stats.live, stats.live == 1 ? "" : "s");
  if (stats.swapped_out > 0)
    text +=
        fmt::format(", {} swapped out, {} back", bytes_text(stats.swapped_out),
                    bytes_text(stats.swapped_in));
  if (stats.host_is_short) text += ", and the host has no memory for more";
  return text;
}

}  // namespace tagflow::devices
