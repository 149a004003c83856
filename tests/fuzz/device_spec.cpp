// Fuzzes the readers of devices: the specs of --devices, the names in device
// fields and constraints, and quantities. An accepted value must be in range
// and stay the same when it is written and read again.
#include <cstdlib>
#include <string>
#include <string_view>

#include "devices/device_registry.h"
#include "devices/quantity.h"
#include "graph/device_name.h"

namespace tagflow {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// In bytes, nanoseconds, and bytes per second.
std::string to_text(const devices::DeviceSpec& spec) {
  std::string text = fmt::format("{}:{}", spec.keyword, spec.count);
  const auto type = devices::DeviceRegistry::global().find(spec.keyword);
  require(type.ok());
  for (const auto& [name, value] : spec.options) {
    const bool is_time =
        *type->quantity_of(name) == devices::Quantity::kDuration;
    text += fmt::format(":{}={}{}", name, value, is_time ? "ns" : "");
  }
  return text;
}

void check_specs(std::string_view text) {
  const auto specs = devices::parse_device_specs(text);
  if (!specs.ok()) {
    require(specs.status().message().starts_with("[devices] \""));
    return;
  }
  std::string again;
  for (const devices::DeviceSpec& spec : *specs) {
    require(spec.count >= 1 && spec.count <= devices::kMaxDevicesOfType);
    again += (again.empty() ? "" : ",") + to_text(spec);
  }
  const auto same = devices::parse_device_specs(again);
  require(same.ok() && *same == *specs);
}

void check_quantities(std::string_view text) {
  using devices::Quantity;
  for (const Quantity quantity :
       {Quantity::kBytes, Quantity::kDuration, Quantity::kBandwidth}) {
    const auto value = devices::parse_quantity(quantity, text);
    if (value.ok())
      require(*value >= (quantity == Quantity::kDuration ? 0 : 1));
    else
      require(!value.status().message().empty());
  }
}

void check_name(std::string_view text) {
  const auto name = graph::DeviceName::parse(text);
  if (!name.ok()) {
    require(name.status().message().starts_with("[device] the name \""));
    return;
  }
  const auto again = graph::DeviceName::parse(name->to_string());
  require(again.ok() && *again == *name);
  require(name->matches(*name));
  const auto merged = name->merged(*again);
  require(merged.ok() && *merged == *name);
  require(name->overridden_by(*again) == *name);
  require(!graph::short_device_name(name->to_string()).empty() ||
          name->is_empty());
}

}  // namespace
}  // namespace tagflow

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tagflow::check_specs(text);
  tagflow::check_quantities(text);
  tagflow::check_name(text);
  return 0;
}
