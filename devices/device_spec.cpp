#include "devices/device_spec.h"

#include <charconv>

#include "devices/device_registry.h"

namespace tagflow::devices {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

Result<int> parse_count(std::string_view text) {
  int count = 0;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_number = end == text.data() + text.size() &&
                         failure != std::errc::invalid_argument;
  if (text.empty() || !is_number)
    return invalid_argument(
        "\"{}\" is neither a count of devices nor an option, as NAME=VALUE",
        text);
  // A number too large to be read is out of any range.
  return failure == std::errc() ? count : kMaxDevicesOfType + 1;
}

Status parse_option(std::string_view text, const DeviceType& type,
                    DeviceSpec& spec) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    return invalid_argument("\"{}\" is not an option, as NAME=VALUE", text);
  const std::string name(text.substr(0, equals));
  TAGFLOW_ASSIGN(const Quantity quantity, type.quantity_of(name));
  Result<int64_t> value = parse_quantity(quantity, text.substr(equals + 1));
  if (!value.ok()) return std::move(value).status().with_prefix(name + ": ");
  if (!spec.options.emplace(name, *value).second)
    return invalid_argument("{} is given twice", name);
  return {};
}

Result<DeviceSpec> parse_spec(std::string_view text,
                              const DeviceRegistry& registry) {
  if (text.empty())
    return invalid_argument("a device is missing before or after a comma");
  const auto parts = split(text, ':');
  DeviceSpec spec;
  spec.keyword = lower_case(parts[0]);
  TAGFLOW_ASSIGN(const DeviceType type, registry.find(spec.keyword));
  size_t next = 1;
  if (parts.size() > 1 && parts[1].find('=') == std::string_view::npos) {
    TAGFLOW_ASSIGN(spec.count, parse_count(parts[1]));
    next = 2;
  }
  for (; next < parts.size(); ++next)
    TAGFLOW_RETURN_IF_ERROR(parse_option(parts[next], type, spec));
  TAGFLOW_RETURN_IF_ERROR(type.check(spec));
  return spec;
}

}  // namespace

Result<std::vector<DeviceSpec>> parse_device_specs(
    std::string_view text, const DeviceRegistry& registry) {
  std::vector<DeviceSpec> specs;
  if (text.empty()) return specs;
  std::map<std::string, int> counts;  // by keyword
  for (const std::string_view part : split(text, ',')) {
    Result<DeviceSpec> spec = parse_spec(part, registry);
    Status status = spec.status();
    if (status.ok() &&
        (counts[spec->keyword] += spec->count) > kMaxDevicesOfType)
      status = invalid_argument("there would be more than {} devices of it",
                                kMaxDevicesOfType);
    if (!status.ok())
      return std::move(status).with_prefix(
          fmt::format("[devices] \"{}\": ", part.empty() ? text : part));
    specs.push_back(std::move(*spec));
  }
  return specs;
}

Result<std::vector<DeviceSpec>> parse_device_specs(std::string_view text) {
  return parse_device_specs(text, DeviceRegistry::global());
}

}  // namespace tagflow::devices
