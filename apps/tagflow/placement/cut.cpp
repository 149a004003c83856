#include "apps/tagflow/placement/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "graph/counted.h"

namespace tagflow::apps {
namespace {

using CutJson = nlohmann::ordered_json;

CutPartition describe_partition(const graph::Partition& partition,
                                graph::NodeId first_added, std::string device) {
  CutPartition part;
  part.device = std::move(device);
  part.file = file_of_partition(part.device);
  for (const graph::Node* node : partition.program.graph.nodes()) {
    ++part.nodes;
    part.sends += node->op() == "_Send";
    part.recvs += node->op() == "_Recv";
    // Merges that the cut adds are those of control loops.
    part.control_loops += node->is_merge() && node->id() >= first_added;
  }
  const auto& bodies = partition.program.bodies;
  for (size_t i = 0; i < bodies.size(); ++i)
    part.bodies.push_back({bodies[i]->name, bodies[i]->graph.size(),
                           file_of_body(part.device, i, bodies[i]->name)});
  return part;
}

std::string count_transfers(const CutReport& report) {
  std::string text;
  for (const auto& [frame, count] : report.transfers)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        frame.empty()
                            ? "per run"
                            : fmt::format("per iteration of \"{}\"", frame));
  return text.empty() ? "none" : text;
}

}  // namespace

Result<CutReport> report_cut(const actors::Distribution& distribution,
                             std::span<const graph::DeviceInfo> devices) {
  CutReport report;
  report.warnings = distribution.placement.warnings;
  std::map<std::string, size_t> transfers;
  for (const graph::Partition& partition : distribution.partitions) {
    const graph::Graph& graph = partition.program.graph;
    report.partitions.push_back(describe_partition(
        partition, graph::NodeId(distribution.placed->end_id()),
        devices[partition.device].name.to_string()));
    TAGFLOW_ASSIGN(const graph::FrameMap frames, graph::FrameMap::build(graph));
    for (const graph::Node* node : graph.nodes())
      if (node->op() == "_Send")
        ++transfers[frames.frame(frames.of(*node)).name];
  }
  report.transfers.assign(transfers.begin(), transfers.end());
  return report;
}

Result<draw::Drawing> draw_cut(const actors::Distribution& distribution,
                               std::span<const graph::DeviceInfo> devices) {
  std::vector<graph::FrameMap> frames;
  for (const graph::Partition& partition : distribution.partitions) {
    TAGFLOW_ASSIGN(frames.emplace_back(),
                   graph::FrameMap::build(partition.program.graph));
  }
  std::vector<draw::DrawnPartition> parts;
  for (size_t i = 0; i < frames.size(); ++i) {
    const graph::Partition& partition = distribution.partitions[i];
    parts.push_back({devices[partition.device].name.to_string(),
                     &partition.program.graph, &frames[i]});
  }
  return draw::make_drawing(parts,
                            graph::NodeId(distribution.placed->end_id()));
}

std::string format_cut(const CutReport& report) {
  std::string text;
  for (const CutPartition& part : report.partitions) {
    text +=
        fmt::format("{:<12}{}: {}, {}, {}, {}\n", "partition", part.device,
                    counted(part.nodes, "node"), counted(part.sends, "Send"),
                    counted(part.recvs, "Recv"),
                    counted(part.control_loops, "control loop"));
    text += fmt::format("  {:<10}{}\n", "file", part.file);
    for (const CutBody& body : part.bodies)
      text += fmt::format("  {:<10}\"{}\": {}, {}\n", "function", body.function,
                          counted(body.nodes, "node"), body.file);
  }
  text += fmt::format("{:<12}{}\n", "transfers", count_transfers(report));
  for (const std::string& warning : report.warnings)
    text += fmt::format("{:<12}{}\n", "warning", warning);
  return text;
}

std::string format_cut_json(const CutReport& report) {
  CutJson partitions = CutJson::array(), transfers = CutJson::array();
  for (const CutPartition& part : report.partitions) {
    CutJson bodies = CutJson::array();
    for (const CutBody& body : part.bodies)
      bodies.push_back({{"function", body.function},
                        {"nodes", body.nodes},
                        {"file", body.file}});
    partitions.push_back({{"device", part.device},
                          {"nodes", part.nodes},
                          {"sends", part.sends},
                          {"recvs", part.recvs},
                          {"control_loops", part.control_loops},
                          {"file", part.file},
                          {"bodies", std::move(bodies)}});
  }
  for (const auto& [frame, count] : report.transfers)
    transfers.push_back({{"frame", frame}, {"count", count}});
  const CutJson root = {{"partitions", std::move(partitions)},
                        {"transfers", std::move(transfers)},
                        {"warnings", report.warnings}};
  return root.dump(-1, ' ', false, CutJson::error_handler_t::replace) + "\n";
}

}  // namespace tagflow::apps
