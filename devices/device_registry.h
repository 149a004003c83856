// The table of device types, and how a session gets its devices.
#pragma once

#include <functional>
#include <memory>
#include <shared_mutex>
#include <span>
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
  std::string help;  // "memory size (2GiB)"
};

struct DeviceType {
  std::string keyword;  // in specs: "cpu", "stream", "cuda"
  std::string type;     // of device names and kernels: "CPU", "STREAM", "GPU"
  std::string summary;  // one line, for help
  std::vector<DeviceOption> options;
  // InvalidArgument for values that no device of the type can have. Null: all
  // values are valid that the quantities allow.
  std::function<Status(const DeviceSpec& spec)> check_values;
  // Makes one device. `info` has its name and incarnation; make fills in the
  // rest. `spec` has passed the check above. An error if the device does not
  // exist, as a GPU beyond the last one of the machine.
  std::function<Result<std::unique_ptr<Device>>(const DeviceSpec& spec,
                                                graph::DeviceInfo info)>
      make;

  // InvalidArgument for a count out of range, an unknown option, or an invalid
  // value of one. No device of the type rejects a spec that passes.
  Status check(const DeviceSpec& spec) const;
  // InvalidArgument, with the list of options, for an unknown one.
  Result<Quantity> quantity_of(std::string_view option) const;
};

// The maximum number of devices of one type.
inline constexpr int kMaxDevicesOfType = 64;

// Thread-safe. Types are never removed.
class DeviceRegistry {
 public:
  // With every type that this library was built with. A program adds its own
  // types, also from static initialisers.
  static DeviceRegistry& global();
  DeviceRegistry() = default;

  // AlreadyExists if the keyword or the type is taken. From then on
  // "/TYPE:0" is a device name, too (graph/device_name.h).
  Status add(DeviceType type);
  // In the order in which they were added.
  std::vector<DeviceType> types() const;
  // InvalidArgument, with the nearest keyword and the list of all. The caller
  // adds "[devices] SPEC" to the message, as to those of DeviceType.
  Result<DeviceType> find(std::string_view keyword) const;
  // The help text of --devices, a line for each type and option.
  std::string help() const;

 private:
  mutable std::shared_mutex mutex_;
  std::vector<DeviceType> types_;
};

// Makes the devices of this process, with names in its `task`. There
// is always a CPU, and CPUs come first; other devices are in the order of the
// specs. Devices of a type are numbered from 0. Each incarnation is a random
// number that is positive as int64_t. InvalidArgument for specs that
// parse_device_specs() would reject; also any error that a type's make()
// returns or throws.
Result<std::vector<std::unique_ptr<Device>>> make_devices(
    const std::vector<DeviceSpec>& specs,
    const DeviceRegistry& registry = DeviceRegistry::global(),
    const graph::DeviceName& task = {"localhost", 0, 0, {}, {}});
// As above, for a text, which parse_device_specs() reads.
Result<std::vector<std::unique_ptr<Device>>> make_devices(
    std::string_view specs);

// What placement knows of each of them.
std::vector<graph::DeviceInfo> infos_of(
    std::span<const std::unique_ptr<Device>> devices);

}  // namespace tagflow::devices
