// DeviceSpec: the devices that are requested for a session.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::devices {

class DeviceRegistry;

// A number of equal devices of one type.
struct DeviceSpec {
  std::string keyword;  // of the type: "cpu", "stream", "cuda"
  int count = 1;
  // By option name, in the units of their quantities: bytes, nanoseconds, bytes
  // per second. Missing options have their defaults.
  std::map<std::string, int64_t> options;

  bool operator==(const DeviceSpec&) const = default;
};

// Reads "cpu:2,stream:1:memory=64MiB:latency=5us": devices separated by commas;
// each has a keyword in any case, a count (default 1), and options.
// InvalidArgument, with a list of the valid names or values, for anything
// unknown, repeated or out of range. The text may be empty.
Result<std::vector<DeviceSpec>> parse_device_specs(
    std::string_view text, const DeviceRegistry& registry);
// As above, for the types in DeviceRegistry::global().
Result<std::vector<DeviceSpec>> parse_device_specs(std::string_view text);

}  // namespace tagflow::devices
