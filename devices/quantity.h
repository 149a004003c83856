// Sizes, durations and bandwidths as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::devices {

enum class Quantity : uint8_t {
  kBytes,      // "64MiB", "1.5GB", "4096": bytes, positive
  kDuration,   // "5us", "1.5ms", "0s": nanoseconds
  kBandwidth,  // "8GB" or "8GB/s": bytes per second, positive
};

// The text with its ASCII letters in lower case.
std::string lower_case(std::string_view text);

// The expected form of such a quantity: "a size, as 64MiB or 1.5GB".
std::string_view quantity_form(Quantity quantity);

// The number in the unit above; fractions of it are dropped. Units are
// case-insensitive: B, KB, MB, GB, TB of 1000, KiB, MiB, GiB, TiB of 1024; ns,
// us, ms, s. InvalidArgument for anything else, for 0 if it must be
// positive, and beyond 2^63.
Result<int64_t> parse_quantity(Quantity quantity, std::string_view text);

}  // namespace tagflow::devices
