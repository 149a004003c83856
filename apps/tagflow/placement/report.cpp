#include "apps/tagflow/placement/report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "graph/counted.h"

namespace tagflow::apps {
namespace {

constexpr double kNanosecondsPerMicrosecond = 1e3;

PlacedDevice describe_device(const graph::DeviceInfo& info) {
  PlacedDevice device;
  device.name = info.name.to_string();
  device.short_name = info.name.short_name();
  device.kernels_at_once = std::max(1, info.kernels_at_once);
  return device;
}

// Fills a report from a distribution.
class PlacementReporter {
 public:
  PlacementReporter(const actors::Distribution& distribution,
                    std::span<const graph::DeviceInfo> devices,
                    const graph::FrameMap& frames)
      : distribution_(distribution),
        graph_(*distribution.placed),
        devices_(devices),
        frames_(frames) {}

  PlacementReport run() {
    for (const graph::DeviceInfo& device : devices_)
      report_.devices.push_back(describe_device(device));
    const graph::PlacementResult& placement = distribution_.placement;
    report_.makespan_us = placement.makespan_ns / kNanosecondsPerMicrosecond;
    report_.warnings = placement.warnings;
    for (const graph::SimulatedRun& run : placement.runs) add_run(run);
    find_readers();
    for (const graph::SimulatedTransfer& transfer : placement.transfers)
      add_transfer(transfer);
    for (PlacedDevice& device : report_.devices) {
      const double most = report_.makespan_us * device.kernels_at_once;
      if (most > 0) device.share = device.busy_us / most;
    }
    add_notes();
    return std::move(report_);
  }

 private:
  void add_run(const graph::SimulatedRun& run) {
    const graph::Node& node = *graph_.node(run.node);
    index_[run.node] = report_.nodes.size();
    PlacedNode& placed = report_.nodes.emplace_back();
    placed.name = node.name();
    placed.op = node.op();
    placed.frame = frames_.frame(frames_.of(node)).name;
    placed.reason = distribution_.reasons[run.node];
    placed.device = run.device;
    placed.start_us = run.start_ns / kNanosecondsPerMicrosecond;
    placed.finish_us = run.finish_ns / kNanosecondsPerMicrosecond;
    PlacedDevice& device = report_.devices[run.device];
    ++device.nodes;
    device.busy_us += placed.finish_us - placed.start_us;
  }

  // For each tensor on each device, the reader that starts first.
  void find_readers() {
    const auto note = [&](const graph::Node& source, int port,
                          const graph::Node& reader) {
      const auto from = index_.find(source.id());
      const auto to = index_.find(reader.id());
      if (from == index_.end() || to == index_.end()) return;
      const PlacedNode& placed = report_.nodes[to->second];
      const auto [known, is_new] =
          readers_.try_emplace({source.id(), port, placed.device}, to->second);
      if (placed.start_us < report_.nodes[known->second].start_us)
        known->second = to->second;
    };
    for (const graph::Node* reader : graph_.nodes()) {
      for (const graph::Endpoint& input : reader->inputs())
        if (input.node != nullptr) note(*input.node, input.port, *reader);
      for (const graph::Node* input : reader->control_inputs())
        note(*input, kControlPort, *reader);
    }
  }

  void add_transfer(const graph::SimulatedTransfer& transfer) {
    const graph::Node& node = *graph_.node(transfer.node);
    const auto reader =
        readers_.find({transfer.node, transfer.port, transfer.to});
    PlacedTransfer& sent = report_.transfers.emplace_back();
    sent.tensor = transfer.port == kControlPort
                      ? "^" + node.name()
                      : fmt::format("{}:{}", node.name(), transfer.port);
    sent.from = transfer.from;
    sent.to = transfer.to;
    sent.source = index_.at(transfer.node);
    sent.reader = reader == readers_.end() ? sent.source : reader->second;
    sent.bytes = transfer.bytes;
    sent.start_us = transfer.start_ns / kNanosecondsPerMicrosecond;
    sent.finish_us = transfer.finish_ns / kNanosecondsPerMicrosecond;
    report_.transferred_bytes += transfer.bytes;
  }

  void add_notes() {
    if (report_.devices.size() == 1)
      report_.notes.push_back("there is one device, and nothing to choose");
    if (frames_.frames().size() > 1)
      report_.notes.push_back(
          fmt::format("a loop counts as {} iterations, one after another, or, "
                      "if it was measured, as many as it made; a transfer in "
                      "it counts once",
                      graph::CostModel::kAssumedTrips));
    std::map<std::string, size_t> bodies;
    for (const graph::Partition& partition : distribution_.partitions)
      for (const auto& body : partition.program.bodies)
        bodies[body->name] = body->graph.size();
    for (const auto& [name, nodes] : bodies)
      report_.notes.push_back(
          fmt::format("function \"{}\", {}, runs where its calls are", name,
                      counted(nodes, "node")));
  }

  static constexpr int kControlPort = -1;

  const actors::Distribution& distribution_;
  const graph::Graph& graph_;
  const std::span<const graph::DeviceInfo> devices_;
  const graph::FrameMap& frames_;
  std::unordered_map<graph::NodeId, size_t> index_;  // of nodes in the report
  // By node, port, and device.
  std::map<std::tuple<graph::NodeId, int, size_t>, size_t> readers_;
  PlacementReport report_;
};

std::string title_of_node(const PlacedNode& node) {
  std::string title = fmt::format("{}\n{:.3f} to {:.3f} us\n{}", node.op,
                                  node.start_us, node.finish_us, node.reason);
  if (!node.frame.empty()) title += fmt::format("\nin loop \"{}\"", node.frame);
  return title;
}

}  // namespace

Result<PlacementReport> report_placement(
    const actors::Distribution& distribution,
    std::span<const graph::DeviceInfo> devices) {
  TAGFLOW_ASSIGN(const graph::FrameMap frames,
                 graph::FrameMap::build(*distribution.placed));
  return PlacementReporter(distribution, devices, frames).run();
}

draw::Schedule make_schedule(const PlacementReport& report) {
  draw::Schedule schedule;
  schedule.title = fmt::format("Simulated run, {:.1f} us", report.makespan_us);
  for (const PlacedDevice& device : report.devices)
    schedule.tracks.push_back({device.short_name, device.name, false, {}});
  std::vector<draw::ItemIndex> items;  // of nodes
  for (const PlacedNode& node : report.nodes) {
    draw::ScheduleTrack& track = schedule.tracks[node.device];
    items.push_back({node.device, track.items.size()});
    track.items.push_back(
        {node.start_us, node.finish_us, node.name, title_of_node(node)});
  }
  std::map<std::pair<size_t, size_t>, size_t> links;
  for (const PlacedTransfer& transfer : report.transfers)
    links.try_emplace({transfer.from, transfer.to});
  for (auto& [ends, track] : links) {
    track = schedule.tracks.size();
    const auto& [from, to] = ends;
    schedule.tracks.push_back(
        {fmt::format("{} → {}", report.devices[from].short_name,
                     report.devices[to].short_name),
         fmt::format("{} → {}", report.devices[from].name,
                     report.devices[to].name),
         true,
         {}});
  }
  for (const PlacedTransfer& transfer : report.transfers) {
    const size_t track = links.at({transfer.from, transfer.to});
    auto& sent = schedule.tracks[track].items;
    const draw::ItemIndex item{track, sent.size()};
    sent.push_back(
        {transfer.start_us, transfer.finish_us, transfer.tensor,
         fmt::format("{:.0f} bytes\n{:.3f} to {:.3f} us", transfer.bytes,
                     transfer.start_us, transfer.finish_us)});
    schedule.lines.emplace_back(items[transfer.source], item);
    if (transfer.reader != transfer.source)
      schedule.lines.emplace_back(item, items[transfer.reader]);
  }
  return schedule;
}

}  // namespace tagflow::apps
