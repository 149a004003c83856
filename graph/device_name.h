// Names of devices, full and partial.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::graph {

// "/job:worker/replica:0/task:17/device:GPU:3", or a part of it. What is not
// said is open: "/job:ps", "/device:GPU:*", "/gpu:0", "GPU:0" (old forms), "".
// Words are understood in any case; jobs are lower case, types upper case.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU", "GPU", "STREAM", ...
  std::optional<int> id;

  // InvalidArgument naming the part that is wrong.
  static Result<DeviceName> parse(std::string_view text);
  // "/job:localhost/replica:0/task:0/device:TYPE:ID".
  static DeviceName local(std::string_view type, int id);

  bool operator==(const DeviceName&) const = default;
  bool is_full() const;
  bool is_empty() const;
  // Everything that this says is so of `device`. What is open in both agrees.
  bool matches(const DeviceName& device) const;
  // Says all that either says. InvalidArgument where they contradict one
  // another, naming the part.
  Result<DeviceName> merged(const DeviceName& other) const;
  // What `inner` leaves open is as here: for scopes in scopes. An id of the
  // outer one does not go with another type.
  DeviceName overridden_by(const DeviceName& inner) const;
  // The canonical form; parse() of it gives this. Open parts are left out, an
  // open id of a device whose type is known is "*".
  std::string to_string() const;
  // "CPU:0": type and id alone, with "?" and 0 for what is open.
  std::string short_name() const;
};

// Makes a type a word of its own in names of parts: "/job:ps/npu:0". CPU, GPU,
// TPU and STREAM are; a registry of devices adds the others. `type` is a
// letter, then letters, digits and '_', else it has no effect. Thread-safe.
void add_short_device_type(std::string_view type);

// "CPU:0" of the text of a full name; all of a text that is none. It lives as
// long as `full`.
std::string_view short_device_name(std::string_view full);

}  // namespace tagflow::graph
