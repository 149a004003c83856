#include "net/tensorflow/step_stats.h"

#include <map>
#include <string>
#include <string_view>

#include "graph/file/graph_proto.h"
#include "graph/proto/step_stats.pb.h"

namespace tagflow::net {
namespace {

using actors::TraceEvent;
using Stream = devices::AcceleratorActivity::Stream;

std::string_view stream_name(Stream stream) {
  switch (stream) {
    case Stream::kToDevice:
      return "copy to the device";
    case Stream::kToHost:
      return "copy to the host";
    default:
      return "kernel";
  }
}

// The statistics of all devices, by name.
class StatsWriter {
 public:
  StatsWriter(tensorflow::StepStats& stats,
              std::chrono::system_clock::time_point began)
      : stats_(stats),
        began_(std::chrono::duration_cast<std::chrono::nanoseconds>(
                   began.time_since_epoch())
                   .count()) {}

  tensorflow::DeviceStepStats& of(std::string_view device) {
    tensorflow::DeviceStepStats*& found = by_name_[std::string(device)];
    if (found == nullptr) {
      found = stats_.add_dev_stats();
      found->set_device(std::string(device));
    }
    return *found;
  }

  void add(std::string_view device, std::string_view node, std::string label,
           int64_t begin, int64_t end, size_t thread) {
    constexpr int64_t kNanos = 1000;  // in a microsecond
    tensorflow::NodeExecStats& node_stats = *of(device).add_node_stats();
    node_stats.set_node_name(std::string(node));
    node_stats.set_timeline_label(std::move(label));
    node_stats.set_thread_id(uint32_t(thread));
    const int64_t start = began_ + begin, took = end - begin;
    node_stats.set_all_start_micros(start / kNanos);
    node_stats.set_all_start_nanos(start);
    node_stats.set_scheduled_micros(start / kNanos);
    node_stats.set_scheduled_nanos(start);
    // A client takes 0 for what is not known.
    node_stats.set_op_end_rel_micros(took / kNanos);
    node_stats.set_op_end_rel_nanos(took);
    node_stats.set_all_end_rel_micros(took / kNanos + 1);
    node_stats.set_all_end_rel_nanos(took);
  }

 private:
  tensorflow::StepStats& stats_;
  const int64_t began_;  // nanoseconds since the epoch
  std::map<std::string, tensorflow::DeviceStepStats*> by_name_;
};

}  // namespace

void write_step_stats(const actors::Trace& trace, const std::string& home,
                      std::chrono::system_clock::time_point began,
                      tensorflow::RunMetadata& metadata) {
  StatsWriter writer(*metadata.mutable_step_stats(), began);
  static_cast<void>(writer.of(home));
  const auto tracks = trace.tracks();
  for (size_t thread = 0; thread < tracks.size(); ++thread)
    for (const TraceEvent& event : tracks[thread]) {
      const bool fires =
          event.kind == TraceEvent::kNode || event.kind == TraceEvent::kCompute;
      if (!fires || event.node == nullptr) continue;
      writer.add(event.device, event.node->name,
                 fmt::format("{} = {}()", event.node->name, event.node->op),
                 event.begin, event.end, thread);
    }
  for (const actors::TraceLaunch& launch : trace.launches())
    writer.add(launch.device, launch.node,
               launch.bytes > 0
                   ? fmt::format("{} of {} bytes", stream_name(launch.stream),
                                 launch.bytes)
                   : fmt::format("{} = kernel()", launch.node),
               launch.begin, launch.end, tracks.size() + size_t(launch.stream));
}

Status write_partitions(const actors::Distribution& distribution,
                        tensorflow::RunMetadata& metadata) {
  for (const graph::Partition& partition : distribution.partitions)
    TAGFLOW_RETURN_IF_ERROR(graph::graph_to_proto(
        partition.program.graph, metadata.add_partition_graphs()));
  return {};
}

}  // namespace tagflow::net
