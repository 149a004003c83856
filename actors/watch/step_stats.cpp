#include "actors/watch/step_stats.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string_view>

#include "actors/watch/trace.h"
#include "graph/file/tensor_proto.h"
#include "graph/proto/step_stats.pb.h"

namespace tagflow::actors {
namespace {

using NodeKey = std::pair<std::string, std::string>;  // device, name

// The firings of a node.
struct NodeTime {
  std::string_view op;
  int64_t begin = std::numeric_limits<int64_t>::max();  // of the first one
  int64_t nanoseconds = 0;                              // of all
  uint64_t firings = 0;
  uint32_t thread = 0;  // of the last one

  void add(int64_t from, int64_t to, bool is_firing) {
    begin = std::min(begin, from);
    nanoseconds += to - from;
    firings += is_firing ? 1 : 0;
  }
};

using NodeTimes = std::map<NodeKey, NodeTime>;

NodeTimes times_of(const Trace& trace) {
  NodeTimes times;
  const auto tracks = trace.tracks();
  for (size_t t = 0; t < tracks.size(); ++t)
    for (const TraceEvent& event : tracks[t]) {
      const bool fires = event.kind == TraceEvent::kNode;
      if (!fires && event.kind != TraceEvent::kCompute) continue;
      NodeTime& time = times[{std::string(event.device), event.node->name}];
      time.op = event.node->op;
      time.thread = uint32_t(t);
      time.add(event.begin, event.end, fires);
    }
  for (const TraceLaunch& launch : trace.launches())
    if (!launch.node.empty())
      times[{launch.device + "/stream:all", launch.node}].add(launch.begin,
                                                              launch.end, true);
  return times;
}

// Nanoseconds since 1970 of the trace's time 0.
int64_t start_of(const Trace& trace) {
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  const auto age = steady_clock::now() - trace.part().start;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             system_clock::now().time_since_epoch() - age)
      .count();
}

int64_t microseconds(int64_t nanoseconds) {
  return std::max<int64_t>(1, nanoseconds / 1000);
}

void set_times(const NodeTime& time, int64_t start,
               tensorflow::NodeExecStats& stats) {
  const int64_t begin = start + time.begin;
  stats.set_all_start_micros(begin / 1000);
  stats.set_all_start_nanos(begin);
  stats.set_scheduled_micros(begin / 1000);
  stats.set_scheduled_nanos(begin);
  stats.set_op_end_rel_micros(microseconds(time.nanoseconds));
  stats.set_op_end_rel_nanos(time.nanoseconds);
  stats.set_all_end_rel_micros(microseconds(time.nanoseconds));
  stats.set_all_end_rel_nanos(time.nanoseconds);
  stats.set_thread_id(time.thread);
}

void set_outputs(const OutputRecorder::Node& node, const std::string& device,
                 tensorflow::NodeExecStats& stats) {
  auto* const memory = stats.add_memory();
  memory->set_allocator_name(device);
  memory->set_total_bytes(int64_t(node.bytes));
  memory->set_peak_bytes(int64_t(node.most_bytes));
  for (size_t i = 0; i < node.ports.size(); ++i) {
    auto* const output = stats.add_output();
    output->set_slot(int32_t(i));
    auto* const tensor = output->mutable_tensor_description();
    tensor->set_dtype(tensorflow::DataType(node.ports[i].dtype));
    graph::shape_to_proto(PartialShape(node.ports[i].shape),
                          tensor->mutable_shape());
    tensor->mutable_allocation_description()->set_allocator_name(device);
  }
}

}  // namespace

OutputRecorder::Nodes OutputRecorder::nodes() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

void OutputRecorder::on_fired(const Location& location, const graph::Node& node,
                              std::span<const Tensor> outputs) {
  Node fired;
  for (const Tensor& tensor : outputs) {
    if (!tensor.valid()) {
      fired.ports.emplace_back();
      continue;
    }
    fired.bytes += tensor.bytes();
    fired.ports.push_back({tensor.dtype(), tensor.shape()});
  }
  const std::lock_guard lock(mutex_);
  Node& all = nodes_[{std::string(location.device), node.name()}];
  ++all.firings;
  all.bytes += fired.bytes;
  all.most_bytes = std::max(all.most_bytes, fired.bytes);
  all.ports = std::move(fired.ports);
}

std::vector<NodeStats> node_stats(const Trace& trace,
                                  const OutputRecorder* outputs) {
  const auto nodes =
      outputs != nullptr ? outputs->nodes() : OutputRecorder::Nodes();
  std::vector<NodeStats> all;
  for (const auto& [key, time] : times_of(trace)) {
    NodeStats& stats =
        all.emplace_back(NodeStats{.device = key.first,
                                   .name = key.second,
                                   .op = std::string(time.op),
                                   .firings = time.firings,
                                   .nanoseconds = time.nanoseconds});
    const auto output = nodes.find(key);
    if (output == nodes.end()) continue;
    stats.firings = output->second.firings;  // of those without room, too
    stats.bytes = output->second.bytes;
    stats.most_bytes = output->second.most_bytes;
  }
  return all;
}

std::string run_metadata(const Trace& trace, const OutputRecorder* outputs) {
  const int64_t start = start_of(trace);
  const auto nodes =
      outputs != nullptr ? outputs->nodes() : OutputRecorder::Nodes();
  tensorflow::RunMetadata metadata;
  tensorflow::DeviceStepStats* device = nullptr;
  // By device first, which is the order of the keys.
  for (const auto& [key, time] : times_of(trace)) {
    if (device == nullptr || device->device() != key.first) {
      device = metadata.mutable_step_stats()->add_dev_stats();
      device->set_device(key.first);
    }
    auto& stats = *device->add_node_stats();
    stats.set_node_name(key.second);
    stats.set_timeline_label(time.firings == 1
                                 ? fmt::format("{} = {}", key.second, time.op)
                                 : fmt::format("{} = {}, {} times", key.second,
                                               time.op, time.firings));
    set_times(time, start, stats);
    const auto output = nodes.find(key);
    if (output != nodes.end()) set_outputs(output->second, key.first, stats);
  }
  return metadata.SerializeAsString();
}

}  // namespace tagflow::actors
