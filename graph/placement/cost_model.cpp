#include "graph/placement/cost_model.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "graph/placement/op_work.h"

namespace tagflow::graph {
namespace {

double static_time(const NodeWork& work, const DeviceInfo& device) {
  if (work.is_free) return 0;
  // Properties of a device may be invalid.
  constexpr double kLeastRate = CostModel::kLeastRate;
  return std::max(0.0, device.launch_ns) +
         std::max(work.flops / std::max(device.flops_per_ns, kLeastRate),
                  work.bytes / std::max(device.bytes_per_ns, kLeastRate));
}

bool is_measurement(double value) {
  return value >= 0 && value <= CostModel::kMostMeasured;
}

Status check_mean(const CostModel::Mean& mean, std::string_view what,
                  const std::string& name) {
  if (!is_measurement(mean.value))
    return invalid_argument(
        "[costs] the {} \"{}\" is {}, not a number from 0 to {}", what, name,
        mean.value, CostModel::kMostMeasured);
  if (mean.count < 0 || mean.count > CostModel::kMeasurements)
    return invalid_argument(
        "[costs] the {} \"{}\" is the mean of {} measurements, not of 0 to {}",
        what, name, mean.count, CostModel::kMeasurements);
  return {};
}

// Between a device and the host.
double link_time(const DeviceInfo& device, double bytes) {
  const double latency = std::max(0.0, device.link_latency_ns);
  if (device.host_memory || device.link_bytes_per_ns <= 0) return latency;
  return latency +
         bytes / std::max(device.link_bytes_per_ns, CostModel::kLeastRate);
}

}  // namespace

NodeWork CostModel::estimate(const Node& node) {
  NodeWork work;
  for (int port = 0; port < node.num_outputs(); ++port)
    work.output_bytes += output_bytes(node, port);
  work.is_free = node.op_def().work == Work::kFree;
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
                              double bytes) const {
  double time = kHandOverNs + link_time(from, bytes) + link_time(to, bytes);
  if (!in_one_task(from.name, to.name)) {
    const Link& network = link(from.name, to.name);
    time += network.latency_ns + bytes / network.bytes_per_ns;
  }
  return time;
}

const CostModel::Link& CostModel::link(const DeviceName& from,
                                       const DeviceName& to) const {
  static constexpr Link kAssumed;
  const auto it =
      links_.find(std::pair<const DeviceName&, const DeviceName&>(from, to));
  return it == links_.end() ? kAssumed : it->second;
}

void CostModel::Mean::add(double sample) {
  count = std::min(count + 1, kMeasurements);
  value += (sample - value) / count;
}

void CostModel::Mean::add(const Mean& newer) {
  for (int i = 0; i < newer.count; ++i) add(newer.value);
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
  time_on(measured, device_type).add(nanoseconds);
}

CostModel::Mean& CostModel::time_on(Measured& measured,
                                    std::string_view device_type) {
  auto& times = measured.nanoseconds;
  auto of_type = std::ranges::find_if(
      times, [&](const auto& entry) { return entry.first == device_type; });
  if (of_type == times.end())
    of_type = times.emplace(times.end(), std::string(device_type), Mean());
  return of_type->second;
}

void CostModel::measure_trips(std::string_view frame, double trips) {
  if (!is_measurement(trips)) return;
  auto it = trips_.find(frame);
  if (it == trips_.end()) it = trips_.emplace(std::string(frame), Mean()).first;
  it->second.add(trips);
}

std::vector<CostModel::NodeCosts> CostModel::node_costs() const {
  std::vector<NodeCosts> all;
  for (const auto& [node, measured] : measured_) {
    all.push_back({node, measured.output_bytes, measured.nanoseconds});
    std::ranges::sort(all.back().nanoseconds, {},
                      [](const auto& entry) { return entry.first; });
  }
  std::ranges::sort(all, {}, &NodeCosts::node);
  return all;
}

std::vector<CostModel::LoopCosts> CostModel::loop_costs() const {
  std::vector<LoopCosts> all;
  for (const auto& [frame, trips] : trips_) all.push_back({frame, trips});
  std::ranges::sort(all, {}, &LoopCosts::frame);
  return all;
}

std::vector<CostModel::LinkCosts> CostModel::link_costs() const {
  std::vector<LinkCosts> all;
  for (const auto& [tasks, link] : links_)
    all.push_back({tasks.first.to_string(), tasks.second.to_string(), link});
  std::ranges::sort(all, {}, [](const LinkCosts& costs) {
    return std::tie(costs.from, costs.to);
  });
  return all;
}

void CostModel::add(const CostModel& newer) {
  for (const auto& [node, costs] : newer.measured_) {
    Measured& measured = measured_[node];
    measured.output_bytes.add(costs.output_bytes);
    for (const auto& [type, mean] : costs.nanoseconds)
      time_on(measured, type).add(mean);
  }
  for (const auto& [frame, trips] : newer.trips_) trips_[frame].add(trips);
  for (const auto& [tasks, link] : newer.links_)
    links_.insert_or_assign(tasks, link);
}

Status CostModel::set(NodeCosts costs) {
  TAGFLOW_RETURN_IF_ERROR(
      check_mean(costs.output_bytes, "bytes of node", costs.node));
  for (const auto& [type, mean] : costs.nanoseconds)
    TAGFLOW_RETURN_IF_ERROR(check_mean(mean, "time of node", costs.node));
  std::erase_if(costs.nanoseconds,
                [](const auto& entry) { return entry.second.count == 0; });
  if (costs.output_bytes.count == 0 && costs.nanoseconds.empty()) return {};
  measured_[costs.node] = {costs.output_bytes, std::move(costs.nanoseconds)};
  return {};
}

Status CostModel::set(LoopCosts costs) {
  TAGFLOW_RETURN_IF_ERROR(
      check_mean(costs.trips, "trips of loop", costs.frame));
  if (costs.trips.count > 0) trips_[costs.frame] = costs.trips;
  return {};
}

Status CostModel::set(LinkCosts costs) {
  const auto task = [](const std::string& text) -> Result<DeviceName> {
    TAGFLOW_ASSIGN(DeviceName name, DeviceName::parse(text));
    if (name.job && name.replica && name.task && !name.type && !name.id)
      return name;
    return invalid_argument(
        "[costs] \"{}\" is not the name of a task, such as "
        "\"/job:worker/replica:0/task:1\"",
        text);
  };
  TAGFLOW_ASSIGN(DeviceName from, task(costs.from));
  TAGFLOW_ASSIGN(DeviceName to, task(costs.to));
  if (from == to)
    return invalid_argument(
        "[costs] the link from {} to {} does not lead to another task",
        costs.from, costs.to);
  const Link& link = costs.link;
  if (!is_measurement(link.latency_ns) || !is_measurement(link.bytes_per_ns) ||
      link.bytes_per_ns < kLeastRate)
    return invalid_argument(
        "[costs] the link from {} to {} has a latency of {} ns and a rate of "
        "{} bytes per ns; these must be numbers up to {}, the rate from {}",
        costs.from, costs.to, link.latency_ns, link.bytes_per_ns, kMostMeasured,
        kLeastRate);
  links_.insert_or_assign({std::move(from), std::move(to)}, link);
  return {};
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

NodeWork CostModel::work(const Node& node) const {
  NodeWork work = estimate(node);
  const Measured* measured = find(node);
  if (measured != nullptr && measured->output_bytes.count > 0)
    work.output_bytes = measured->output_bytes.value;
  return work;
}

void CostModel::find_times(const Node& node, const NodeWork& work,
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
