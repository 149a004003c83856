// DeviceSpec: which devices a session is asked to have.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::devices {

class DeviceRegistry;

// Some devices of a type, all alike.
struct DeviceSpec {
  std::string keyword;  // of the type: "cpu", "stream", "cuda"
  int count = 1;
  // By the options' names, in the units of their quantities: bytes,
  // nanoseconds, bytes per second. Those left out have their defaults.
  std::map<std::string, int64_t> options;

  bool operator==(const DeviceSpec&) const = default;
};

// Reads "cpu:2,stream:1:memory=64MiB:latency=5us": devices apart by commas;
// of each the keyword in any case, how many (1 where it is left out), and
// options.
// InvalidArgument, with what there is instead, for anything unknown, twice or
// out of range. The text may be empty.
Result<std::vector<DeviceSpec>> parse_device_specs(
    std::string_view text, const DeviceRegistry& registry);
// The same of the types in DeviceRegistry::global().
Result<std::vector<DeviceSpec>> parse_device_specs(std::string_view text);

}  // namespace tagflow::devices
