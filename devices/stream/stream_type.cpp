// Registration of the stream device.
#include "devices/kernel_registry.h"
#include "devices/stream/stream_device.h"

namespace tagflow::devices {
namespace {

using std::chrono::nanoseconds;

StreamOptions options_of(const DeviceSpec& spec) {
  StreamOptions options;
  for (const auto& [name, value] : spec.options) {
    if (name == "memory") options.memory = value;
    if (name == "latency") options.launch_latency = nanoseconds(value);
    if (name == "copy-latency") options.copy_latency = nanoseconds(value);
    if (name == "bandwidth") options.bandwidth = value;
  }
  return options;
}

}  // namespace

Status StreamOptions::check() const {
  constexpr std::chrono::seconds kMostLatency{1};
  constexpr int64_t kLeastBandwidth = 1000000;
  if (memory <= 0)
    return invalid_argument("[stream] memory must be at least 1, but is {}",
                            memory);
  for (const nanoseconds latency : {launch_latency, copy_latency})
    if (latency < nanoseconds(0) || latency > kMostLatency)
      return invalid_argument(
          "[stream] a latency of {} ns is not within 0 and 1 s",
          latency.count());
  if (bandwidth != 0 && bandwidth < kLeastBandwidth)
    return invalid_argument(
        "[stream] a bandwidth of {} bytes per second is below 1 MB/s",
        bandwidth);
  return {};
}

DeviceType stream_device_type() {
  DeviceType type;
  type.keyword = "stream";
  type.type = "STREAM";
  type.summary = "an accelerator emulated by threads of this process";
  type.options = {
      {"memory", Quantity::kBytes, "memory size (2GiB)"},
      {"latency", Quantity::kDuration, "latency of each launch (0s)"},
      {"bandwidth", Quantity::kBandwidth,
       "bandwidth of copies (that of the host)"},
      {"copy-latency", Quantity::kDuration, "latency of each copy (0s)"},
  };
  type.check_values = [](const DeviceSpec& spec) {
    return options_of(spec).check();
  };
  type.make = [](const DeviceSpec& spec,
                 graph::DeviceInfo info) -> Result<std::unique_ptr<Device>> {
    return std::unique_ptr<Device>(
        std::make_unique<StreamDevice>(std::move(info), options_of(spec)));
  };
  return type;
}

void register_stream_kernels(KernelRegistry& registry) {
  registry.inherit("STREAM", "CPU");
  registry.limit("STREAM", is_plain_node, "inputs and outputs of plain types");
}

}  // namespace tagflow::devices
