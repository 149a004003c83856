// Names of devices, full and partial.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::graph {

// "/job:worker/replica:0/task:17/device:GPU:3", or a part of it. Missing parts
// are open: "/job:ps", "/device:GPU:*", "/gpu:0", "GPU:0" (old forms), "".
// Keywords are case-insensitive; jobs are lower case, types upper case.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU", "GPU", "STREAM", ...
  std::optional<int> id;

  // InvalidArgument; the message names the part.
  static Result<DeviceName> parse(std::string_view text);
  // "/job:localhost/replica:0/task:0/device:TYPE:ID".
  static DeviceName local(std::string_view type, int id);

  bool operator==(const DeviceName&) const = default;
  bool is_full() const;
  bool is_empty() const;
  // Whether `device` has every part that is not open here, with equal values.
  bool matches(const DeviceName& device) const;
  // Combines the parts of both. InvalidArgument if they contradict each other;
  // the message names the part.
  Result<DeviceName> merged(const DeviceName& other) const;
  // `inner`, with its open parts taken from this name: for nested scopes. The
  // outer id is not used with a different inner type.
  DeviceName overridden_by(const DeviceName& inner) const;
  // The canonical form, which parse() converts back. Open parts are left out;
  // if the type is known and the id is open, the id is "*".
  std::string to_string() const;
  // "CPU:0": only type and id; an open type gives "?", an open id 0.
  std::string short_name() const;
};

// Allows a type as a keyword: "/job:ps/npu:0". CPU, GPU, TPU and STREAM are
// built in; a device registry adds the others. `type` is a letter, then
// letters, digits and '_'; anything else has no effect. Thread-safe.
void add_short_device_type(std::string_view type);

// "CPU:0" from a full name; a text that is not a full name is returned whole.
// The result refers to the memory of `full`.
std::string_view short_device_name(std::string_view full);

}  // namespace tagflow::graph
