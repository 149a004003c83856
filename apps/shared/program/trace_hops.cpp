#include "apps/shared/program/trace_hops.h"

#include <algorithm>

namespace tagflow::apps {
namespace {

using actors::TraceEvent;
using actors::TraceFrame;

// The last that ended before `time`.
template <class Map, class Key>
const TraceActivity* last_before(const Map& lists, const Key& key,
                                 int64_t time) {
  const auto it = lists.find(key);
  if (it == lists.end()) return nullptr;
  const auto after =
      std::ranges::upper_bound(it->second, time, {}, &TraceActivity::end);
  return after == it->second.begin() ? nullptr : &*std::prev(after);
}

// The last that began before `time`, for what another process has sent: its
// clock is known to some microseconds only, so that the end may seem to be
// after the arrival.
template <class Map, class Key>
const TraceActivity* begun_before(const Map& lists, const Key& key,
                                  int64_t time) {
  const auto it = lists.find(key);
  if (it == lists.end()) return nullptr;
  const TraceActivity* last = nullptr;
  for (const TraceActivity& activity : it->second)
    if (activity.begin <= time) last = &activity;
  return last;
}

}  // namespace

HopFinder::HopFinder(const std::vector<TraceTrack>& tracks,
                     const std::vector<TraceFrame>& frames) {
  for (size_t t = 0; t < tracks.size(); ++t) {
    for (const TraceEvent& event : tracks[t]) {
      if (event.kind != TraceEvent::kActivity) continue;
      const TraceActivity activity = {event.begin, event.end, int(t),
                                      event.device};
      of_iterations_[scope_of(event.device, event.tag)].push_back(activity);
      of_instances_[instance_of(event.device, event.tag)].push_back(activity);
    }
  }
  for (const TraceFrame& frame : frames) {
    const std::string_view device = frame.plan->device;
    const TraceInstance instance = instance_of(device, frame.instance);
    // Each run of the same graph has the same instances.
    const bool is_new = callers_.try_emplace(instance, frame.caller).second;
    const bool is_root = instance == instance_of(device, frame.caller);
    if (!is_new || is_root) continue;
    const TraceScope caller = scope_of(device, frame.caller);
    if (frame.plan->is_body) {
      Activities& calls = of_calls_[caller];
      const auto called = of_instances_.find(instance);
      if (called != of_instances_.end())
        calls.insert(calls.end(), called->second.begin(), called->second.end());
      continue;
    }
    for (const std::string& exit : frame.plan->exits)
      exits_[{caller, exit}] = instance;
  }
  const auto sort = [](auto& lists) {
    for (auto& [key, list] : lists)
      std::ranges::sort(list, {}, &TraceActivity::end);
  };
  sort(of_iterations_);
  sort(of_instances_);
  sort(of_calls_);
}

const TraceActivity* HopFinder::source_of(const TraceEvent& arrival) const {
  const actors::TraceNode& node = *arrival.node;
  const std::string_view device = arrival.device;
  // The same iteration on other devices.
  if (!node.sender.empty()) {
    const TraceScope scope = scope_of(node.sender, arrival.tag);
    const TraceActivity* source =
        last_before(of_iterations_, scope, arrival.begin);
    if (source == nullptr && task_of(node.sender) != task_of(device))
      source = begun_before(of_iterations_, scope, arrival.begin);
    return source;
  }
  if (node.is_next_iteration) {
    devices::Tag before = arrival.tag;
    --before.iteration;
    return last_before(of_iterations_, scope_of(device, before), arrival.begin);
  }
  // A token that leaves a frame arrives in the iteration that started the
  // frame.
  if (node.is_exit) {
    const auto from = exits_.find({scope_of(device, arrival.tag), node.name});
    return from == exits_.end()
               ? nullptr
               : last_before(of_instances_, from->second, arrival.begin);
  }
  if (node.op == "_Call")
    return last_before(of_calls_, scope_of(device, arrival.tag), arrival.begin);
  // A token that enters a frame, by an Enter or as an argument, or that is fed.
  const auto caller = callers_.find(instance_of(device, arrival.tag));
  if (caller == callers_.end() ||
      instance_of(device, caller->second) == instance_of(device, arrival.tag))
    return nullptr;
  return last_before(of_iterations_, scope_of(device, caller->second),
                     arrival.begin);
}

LaunchFinder::LaunchFinder(const std::vector<TraceTrack>& tracks,
                           const std::vector<actors::TraceLaunch>& launches) {
  for (const actors::TraceLaunch& launch : launches)
    if (!launch.node.empty()) rows_[{launch.device, launch.node}];
  for (size_t t = 0; t < tracks.size(); ++t) {
    int64_t since = 0;
    for (const TraceEvent& event : tracks[t]) {
      if (event.kind == TraceEvent::kActivity) since = event.begin;
      if (event.kind != TraceEvent::kNode) continue;
      const auto row = rows_.find({event.device, event.node->name});
      if (row == rows_.end()) continue;
      row->second.entries.push_back({{event.begin, int(t)}, since});
    }
  }
  for (auto& [name, row] : rows_)
    std::ranges::sort(row.entries, {}, [](const Row::Entry& entry) {
      return entry.firing.time;
    });
}

// Times between two clock reads are inexact: the kernel may have begun before
// the recorded time of the firing.
std::optional<LaunchFinder::Firing> LaunchFinder::next(
    const actors::TraceLaunch& launch) {
  Row& row = rows_.at({launch.device, launch.node});
  if (row.used == row.entries.size()) return std::nullopt;
  const Row::Entry& entry = row.entries[row.used++];
  if (launch.begin < entry.since) return std::nullopt;
  return Firing{std::min(entry.firing.time, launch.begin), entry.firing.track};
}

}  // namespace tagflow::apps
