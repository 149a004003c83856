#include "graph/placement/cost_model.h"

#include <algorithm>
#include <cmath>

#include "graph/placement/op_work.h"

namespace tagflow::graph {
namespace {

// Figures of a device that make no sense must not divide by nothing.
constexpr double kLeastRate = 1e-6;

double static_time(const Work& work, const DeviceInfo& device) {
  if (work.is_free) return 0;
  return std::max(0.0, device.launch_ns) +
         std::max(work.flops / std::max(device.flops_per_ns, kLeastRate),
                  work.bytes / std::max(device.bytes_per_ns, kLeastRate));
}

bool is_measurement(double value) { return std::isfinite(value) && value >= 0; }

// Between a device and the host.
double link_time(const DeviceInfo& device, double bytes) {
  const double latency = std::max(0.0, device.link_latency_ns);
  if (device.host_memory || device.link_bytes_per_ns <= 0) return latency;
  return latency + bytes / device.link_bytes_per_ns;
}

}  // namespace

Work CostModel::estimate(const Node& node) {
  Work work;
  for (int port = 0; port < node.num_outputs(); ++port)
    work.output_bytes += output_bytes(node, port);
  work.is_free = is_free_op(node);
  if (work.is_free) return work;
  work.bytes = work.output_bytes;
  for (const Endpoint& input : node.inputs())
    work.bytes += output_bytes(*input.node, input.port);
  work.flops = estimate_flops(node, work.output_bytes, work.bytes);
  return work;
}

double CostModel::output_bytes(const Node& node, int port) {
  return assumed_elements(node.output_shape(port)) *
         double(dtype_size(remove_ref(node.output_dtypes()[size_t(port)])));
}

double CostModel::transfer_ns(const DeviceInfo& from, const DeviceInfo& to,
                              double bytes) {
  return kHandOverNs + link_time(from, bytes) + link_time(to, bytes);
}

void CostModel::Mean::add(double sample) {
  count = std::min(count + 1, kMeasurements);
  value += (sample - value) / count;
}

void CostModel::measure(std::string_view node, std::string_view device_type,
                        double nanoseconds, double output_bytes) {
  const bool has_time = is_measurement(nanoseconds);
  const bool has_bytes = is_measurement(output_bytes);
  if (!has_time && !has_bytes) return;
  auto it = measured_.find(node);
  if (it == measured_.end())
    it = measured_.emplace(std::string(node), Measured()).first;
  Measured& measured = it->second;
  if (has_bytes) measured.output_bytes.add(output_bytes);
  if (!has_time) return;
  auto& times = measured.nanoseconds;
  auto of_type = std::ranges::find_if(
      times, [&](const auto& entry) { return entry.first == device_type; });
  if (of_type == times.end())
    of_type = times.emplace(times.end(), std::string(device_type), Mean());
  of_type->second.add(nanoseconds);
}

void CostModel::measure_trips(std::string_view frame, double trips) {
  if (!is_measurement(trips)) return;
  auto it = trips_.find(frame);
  if (it == trips_.end()) it = trips_.emplace(std::string(frame), Mean()).first;
  it->second.add(trips);
}

std::optional<double> CostModel::trips(std::string_view frame) const {
  const auto it = trips_.find(frame);
  if (it == trips_.end()) return std::nullopt;
  return it->second.value;
}

const CostModel::Measured* CostModel::find(const Node& node) const {
  if (measured_.empty()) return nullptr;
  const auto it = measured_.find(std::string_view(node.name()));
  return it == measured_.end() ? nullptr : &it->second;
}

Work CostModel::work(const Node& node) const {
  Work work = estimate(node);
  const Measured* measured = find(node);
  if (measured != nullptr && measured->output_bytes.count > 0)
    work.output_bytes = measured->output_bytes.value;
  return work;
}

void CostModel::find_times(const Node& node, const Work& work,
                           std::span<const DeviceInfo> devices,
                           std::span<double> nanoseconds) const {
  for (size_t d = 0; d < devices.size(); ++d)
    nanoseconds[d] = static_time(work, devices[d]);
  const Measured* measured = find(node);
  if (measured == nullptr) return;
  const auto time_on = [&](const DeviceInfo& device) -> const Mean* {
    for (const auto& [type, mean] : measured->nanoseconds)
      if (device.name.type == type) return &mean;
    return nullptr;
  };
  double factor = 1;
  for (size_t d = 0; d < devices.size(); ++d) {
    const Mean* mean = time_on(devices[d]);
    if (mean == nullptr || nanoseconds[d] <= 0) continue;
    factor = mean->value / nanoseconds[d];
    break;
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    const Mean* mean = time_on(devices[d]);
    nanoseconds[d] = mean != nullptr ? mean->value : nanoseconds[d] * factor;
  }
}

}  // namespace tagflow::graph
