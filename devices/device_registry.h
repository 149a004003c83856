// The table of device types, and how a session gets its devices.
#pragma once

#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.h"
#include "devices/device_spec.h"
#include "devices/quantity.h"

namespace tagflow::devices {

struct DeviceOption {
  std::string name;  // "memory"
  Quantity quantity = Quantity::kBytes;
  std::string help;  // "how much it has (2GiB)"
};

struct DeviceType {
  std::string keyword;  // in specs: "cpu", "stream", "cuda"
  std::string type;     // of device names and kernels: "CPU", "STREAM", "GPU"
  std::string summary;  // one line, for help
  std::vector<DeviceOption> options;
  // InvalidArgument for values that no device of the type can have. Null: all
  // are good that the quantities allow.
  std::function<Status(const DeviceSpec& spec)> check_values;
  // Makes one device. `info` has its name and incarnation; the rest is to be
  // filled in. `spec` was checked against the above. An error where the device
  // is not there, as a GPU beyond the last one of the machine.
  std::function<Result<std::unique_ptr<Device>>(const DeviceSpec& spec,
                                                graph::DeviceInfo info)>
      make;

  // InvalidArgument for a count out of range, and for options that there are
  // not or that cannot have such a value. What it accepts no device of the type
  // refuses for its spec.
  Status check(const DeviceSpec& spec) const;
  // InvalidArgument, naming those there are.
  Result<Quantity> quantity_of(std::string_view option) const;
};

// Most devices of one type.
inline constexpr int kMaxDevicesOfType = 64;

// Thread-safe. Types are never removed.
class DeviceRegistry {
 public:
  // With every type that this library was built with. A program adds its own,
  // in static initialisers too.
  static DeviceRegistry& global();
  DeviceRegistry() = default;

  // AlreadyExists where the keyword or the type is taken. From then on
  // "/TYPE:0" is a name of a device, too (graph/device_name.h).
  Status add(DeviceType type);
  // In the order in which they were added.
  std::vector<DeviceType> types() const;
  // InvalidArgument, naming the nearest and those there are; as the errors of
  // DeviceType it lacks the place, "[devices] SPEC", which the caller adds.
  Result<DeviceType> find(std::string_view keyword) const;
  // What --devices takes, a line for each type and option.
  std::string help() const;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<DeviceType> types_;
};

// Makes the devices of this process, as /job:localhost/replica:0/task:0. There
// is always a CPU, and CPUs come first; otherwise devices are in the order of
// the specs. Devices of a type are numbered from 0. Each incarnation is a
// random number that is positive as int64_t. InvalidArgument for specs that no
// text could give, and what a type's make() returns or throws.
Result<std::vector<std::unique_ptr<Device>>> make_devices(
    const std::vector<DeviceSpec>& specs,
    const DeviceRegistry& registry = DeviceRegistry::global());
// The same of a text, as parse_device_specs() reads it.
Result<std::vector<std::unique_ptr<Device>>> make_devices(
    std::string_view specs);

}  // namespace tagflow::devices
