#include "graph/placement/timeline.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace tagflow::graph {
namespace {

// An upper bound for the number of concurrent kernels of a device.
constexpr int kMaxLanes = 1024;

// The link carries one tensor at a time.
bool has_link(const DeviceInfo& device) { return !device.host_memory; }

}  // namespace

Timeline::Timeline(std::span<const DeviceInfo> devices)
    : devices_(devices),
      inward_(devices.size()),
      outward_(devices.size()),
      held_(devices.size()) {
  for (const DeviceInfo& device : devices)
    lanes_.emplace_back(
        size_t(std::clamp(device.kernels_at_once, 1, kMaxLanes)));
}

Span Timeline::run(uint32_t device, double ready_ns, double duration_ns) {
  std::vector<double>& lanes = lanes_[device];
  std::ranges::pop_heap(lanes, std::greater<>());
  const double start = std::max(ready_ns, lanes.back());
  lanes.back() = start + duration_ns;
  std::ranges::push_heap(lanes, std::greater<>());
  return {start, start + duration_ns};
}

Span Timeline::foresee(const Passage& passage) const {
  const DeviceInfo& from = devices_[passage.from];
  const DeviceInfo& to = devices_[passage.to];
  double start = passage.ready_ns;
  if (has_link(from)) start = std::max(start, outward_[passage.from]);
  if (has_link(to)) start = std::max(start, inward_[passage.to]);
  return {start, start + passage.repeats *
                             CostModel::transfer_ns(from, to, passage.bytes)};
}

Span Timeline::send(const Passage& passage) {
  const Span span = foresee(passage);
  if (has_link(devices_[passage.from])) outward_[passage.from] = span.finish_ns;
  if (has_link(devices_[passage.to])) inward_[passage.to] = span.finish_ns;
  return span;
}

double Timeline::room(uint32_t device) const {
  const int64_t limit = devices_[device].memory_limit;
  if (limit <= 0) return std::numeric_limits<double>::infinity();
  return double(limit) - held_[device];
}

}  // namespace tagflow::graph
