#include "devices/device_registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>

#include "graph/device_name.h"
#include "graph/fault.h"
#include "graph/op_registry.h"

namespace tagflow::devices {
namespace {

// A random number that is positive as int64_t.
uint64_t random_incarnation() {
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(
      1, (uint64_t(1) << 63) - 1)(random);
}

}  // namespace

Result<Quantity> DeviceType::quantity_of(std::string_view option) const {
  std::vector<std::string_view> names;
  for (const DeviceOption& known : options) {
    if (known.name == option) return known.quantity;
    names.push_back(known.name);
  }
  if (names.empty()) return invalid_argument("{} has no options", keyword);
  return invalid_argument("{} has no option \"{}\"; it has {}", keyword, option,
                          fmt::join(names, ", "));
}

Status DeviceType::check(const DeviceSpec& spec) const {
  if (spec.count < 1 || spec.count > kMaxDevicesOfType)
    return invalid_argument("the number of devices must be from 1 to {}",
                            kMaxDevicesOfType);
  for (const auto& [name, value] : spec.options) {
    TAGFLOW_ASSIGN(const Quantity quantity, quantity_of(name));
    const int64_t least = quantity == Quantity::kDuration ? 0 : 1;
    if (value < least)
      return invalid_argument("{} must be at least {}, but is {}", name, least,
                              value);
  }
  return check_values ? check_values(spec) : Status();
}

Status DeviceRegistry::add(DeviceType type) {
  std::unique_lock lock(mutex_);
  for (const DeviceType& known : types_)
    if (known.keyword == type.keyword || known.type == type.type)
      return error(Code::kAlreadyExists,
                   "[devices] the type {} (\"{}\") is registered already",
                   known.type, known.keyword);
  types_.push_back(std::move(type));
  graph::add_short_device_type(types_.back().type);
  return {};
}

std::vector<DeviceType> DeviceRegistry::types() const {
  std::shared_lock lock(mutex_);
  return types_;
}

Result<DeviceType> DeviceRegistry::find(std::string_view keyword) const {
  std::shared_lock lock(mutex_);
  std::vector<std::string> keywords;
  std::string meant;
  for (const DeviceType& type : types_) {
    if (type.keyword == keyword) return type;
    keywords.push_back(type.keyword);
    // Devices of type GPU have the keyword "cuda".
    if (lower_case(type.type) == keyword) meant = type.keyword;
  }
  if (meant.empty()) meant = graph::nearest_name(keyword, keywords);
  return invalid_argument(
      "there is no device type \"{}\"{} are {}", keyword,
      meant.empty() ? "; there"
                    : fmt::format(", did you mean \"{}\"? There", meant),
      fmt::join(keywords, ", "));
}

std::string DeviceRegistry::help() const {
  std::string text;
  for (const DeviceType& type : types()) {
    text += fmt::format("{:<8} {}\n", type.keyword, type.summary);
    for (const DeviceOption& option : type.options)
      text += fmt::format("  {:<14} {}: {}\n", option.name + "=", option.help,
                          quantity_form(option.quantity));
  }
  return text;
}

Result<std::vector<std::unique_ptr<Device>>> make_devices(
    const std::vector<DeviceSpec>& specs, const DeviceRegistry& registry,
    const graph::DeviceName& task) {
  std::vector<DeviceSpec> ordered = specs;
  const auto is_cpu = [](const DeviceSpec& spec) {
    return spec.keyword == "cpu";
  };
  if (std::ranges::none_of(ordered, is_cpu)) ordered.push_back({"cpu", 1, {}});
  std::stable_partition(ordered.begin(), ordered.end(), is_cpu);

  std::vector<std::unique_ptr<Device>> devices;
  std::map<std::string, int> made;  // by type
  for (const DeviceSpec& spec : ordered) {
    Result<DeviceType> type = registry.find(spec.keyword);
    const auto named = [&spec](Status status) {
      return std::move(status).with_prefix(
          fmt::format("[devices] \"{}\": ", spec.keyword));
    };
    Status checked =
        type.ok() ? guarded([&] { return type->check(spec); }) : type.status();
    if (checked.ok() && made[type->type] + spec.count > kMaxDevicesOfType)
      checked = invalid_argument("there would be more than {} devices of it",
                                 kMaxDevicesOfType);
    if (!checked.ok()) return named(std::move(checked));
    for (int i = 0; i < spec.count; ++i) {
      graph::DeviceInfo info;
      info.name = {task.job, task.replica, task.task, type->type,
                   made[type->type]++};
      info.incarnation = random_incarnation();
      try {
        TAGFLOW_ASSIGN(auto device, type->make(spec, std::move(info)));
        if (device == nullptr)
          return named(error(Code::kInternal, "there is no device"));
        devices.push_back(std::move(device));
      } catch (...) {
        return named(current_fault());
      }
    }
  }
  return devices;
}

Result<std::vector<std::unique_ptr<Device>>> make_devices(
    std::string_view specs) {
  TAGFLOW_ASSIGN(const auto parsed, parse_device_specs(specs));
  return make_devices(parsed);
}

std::vector<graph::DeviceInfo> infos_of(
    std::span<const std::unique_ptr<Device>> devices) {
  std::vector<graph::DeviceInfo> infos;
  for (const auto& device : devices) infos.push_back(device->info());
  return infos;
}

}  // namespace tagflow::devices
