#include "actors/watch/cost_recorder.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tagflow::actors {
namespace {

using Clock = std::chrono::steady_clock;

// The node that this thread computes. Computations do not nest.
thread_local const graph::Node* running = nullptr;
thread_local Clock::time_point started;

void begin(const graph::Node& node) {
  running = &node;
  started = Clock::now();
}

// Nanoseconds since begin(); NaN if the thread computes another node.
double end(const graph::Node& node) {
  if (std::exchange(running, nullptr) != &node)
    return std::numeric_limits<double>::quiet_NaN();
  return std::chrono::duration<double, std::nano>(Clock::now() - started)
      .count();
}

// "CPU" of "/job:localhost/replica:0/task:0/device:CPU:0".
std::string_view type_of(std::string_view device) {
  const std::string_view name = graph::short_device_name(device);
  return name.substr(0, name.find(':'));
}

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

}  // namespace

CostRecorder::CostRecorder(
    std::span<const std::unique_ptr<devices::Device>> devices,
    graph::CostModel known)
    : costs_(std::move(known)) {
  for (const auto& device : devices)
    if (device->accelerator() != nullptr)
      accelerators_.insert(device->info().name.to_string());
}

graph::CostModel CostRecorder::costs() const {
  std::lock_guard lock(mutex_);
  graph::CostModel costs = costs_;
  for (const auto& [frame, loop] : loops_) {
    const auto around = loops_.find({frame.first, loop.around});
    const uint64_t times =
        around == loops_.end() ? loop.entered : around->second.trips();
    if (times > 0)
      costs.measure_trips(frame.second, double(loop.trips()) / double(times));
  }
  return costs;
}

// Free nodes run on workers, and a Recv waits for another device.
bool CostRecorder::is_launched(const Location& location,
                               const graph::Node& node) const {
  return accelerators_.contains(location.device) && node.num_outputs() > 0 &&
         node.op() != "_Recv" && !graph::CostModel::estimate(node).is_free;
}

void CostRecorder::on_fire(const Location& location, const graph::Node& node,
                           bool dead) {
  running = nullptr;
  if (dead) return;
  if (!is_launched(location, node)) return begin(node);
  std::lock_guard lock(mutex_);
  launched_[{&node, location.tag.frame_hi, location.tag.frame_lo,
             location.tag.iteration}] = Clock::now();
}

void CostRecorder::on_fired(const Location& location, const graph::Node& node,
                            std::span<const Tensor> outputs) {
  double nanoseconds = end(node);
  double bytes = 0;
  for (const Tensor& output : outputs) bytes += double(output.bytes());
  std::lock_guard lock(mutex_);
  if (is_launched(location, node)) nanoseconds = end_launch(location, node);
  costs_.measure(node.name(), type_of(location.device), nanoseconds, bytes);
}

double CostRecorder::end_launch(const Location& location,
                                const graph::Node& node) {
  const auto launch =
      launched_.find({&node, location.tag.frame_hi, location.tag.frame_lo,
                      location.tag.iteration});
  if (launch == launched_.end()) return kNotMeasured;
  const Clock::time_point now = Clock::now();
  Clock::time_point start = launch->second;
  launched_.erase(launch);
  auto answered = answered_.find(location.device);
  if (answered == answered_.end())
    answered = answered_.emplace(std::string(location.device), start).first;
  start = std::max(start, std::exchange(answered->second, now));
  return std::chrono::duration<double, std::nano>(now - start).count();
}

void CostRecorder::on_compute(const Location&, const graph::Node& node) {
  begin(node);
}

// If the kernel ended on this thread, on_fired() has measured the time.
void CostRecorder::on_computed(const Location& location,
                               const graph::Node& node) {
  const double nanoseconds = end(node);
  std::lock_guard lock(mutex_);
  costs_.measure(node.name(), type_of(location.device), nanoseconds,
                 kNotMeasured);
}

// The root is not a loop.
void CostRecorder::on_frame_start(const Location& location,
                                  const Location& caller) {
  if (location.frame.empty()) return;
  std::lock_guard lock(mutex_);
  Loop& loop =
      loops_[{std::string(location.device), std::string(location.frame)}];
  loop.around = caller.frame;
  ++loop.entered;
}

void CostRecorder::on_iteration_start(const Location& location) {
  if (location.frame.empty()) return;
  std::lock_guard lock(mutex_);
  ++loops_[{std::string(location.device), std::string(location.frame)}]
        .iterations;
}

}  // namespace tagflow::actors
