#include "graph/placement/timeline.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace tagflow::graph {
namespace {

// An upper bound for the number of concurrent kernels of a device.
constexpr int kMaxLanes = 1024;

// Whether a link to the host carries its tensors, one at a time.
bool has_link(const DeviceInfo& device) { return !device.host_memory; }

}  // namespace

Timeline::Timeline(std::span<const DeviceInfo> devices, const CostModel& costs)
    : devices_(devices),
      costs_(costs),
      inward_(devices.size()),
      outward_(devices.size()),
      held_(devices.size()) {
  for (const DeviceInfo& device : devices) {
    lanes_.emplace_back(
        size_t(std::clamp(device.kernels_at_once, 1, kMaxLanes)));
    const auto first =
        std::ranges::find_if(devices, [&](const DeviceInfo& other) {
          return in_one_task(other.name, device.name);
        });
    first_of_task_.push_back(uint32_t(first - devices.begin()));
  }
}

template <class Self, class F>
void Timeline::visit_links(Self& self, const Passage& passage, const F& visit) {
  const auto [from, to] = std::pair(passage.from, passage.to);
  if (has_link(self.devices_[from])) visit(self.outward_[from].device);
  if (has_link(self.devices_[to])) visit(self.inward_[to].device);
  const uint32_t sender = self.first_of_task_[from];
  const uint32_t receiver = self.first_of_task_[to];
  if (sender == receiver) return;
  visit(self.outward_[sender].task);
  visit(self.inward_[receiver].task);
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
  double start = passage.ready_ns;
  visit_links(*this, passage,
              [&](double free) { start = std::max(start, free); });
  const double once = costs_.transfer_ns(devices_[passage.from],
                                         devices_[passage.to], passage.bytes);
  return {start, start + passage.repeats * once};
}

Span Timeline::send(const Passage& passage) {
  const Span span = foresee(passage);
  visit_links(*this, passage, [&](double& free) { free = span.finish_ns; });
  return span;
}

double Timeline::room(uint32_t device) const {
  const int64_t limit = devices_[device].memory_limit;
  if (limit <= 0) return std::numeric_limits<double>::infinity();
  return double(limit) - held_[device];
}

}  // namespace tagflow::graph
