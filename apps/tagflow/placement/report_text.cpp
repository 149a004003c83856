// A placement as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/tagflow/placement/report.h"
#include "graph/counted.h"

namespace tagflow::apps {
namespace {

using ReportJson = nlohmann::ordered_json;

void add_device(const PlacementReport& report, size_t device,
                std::string& text) {
  // Longer names shift the following columns.
  constexpr size_t kMaxColumn = 40;
  size_t names = 0, ops = 0;
  for (const PlacedNode& node : report.nodes) {
    if (node.device != device) continue;
    names = std::max(names, std::min(node.name.size(), kMaxColumn));
    ops = std::max(ops, std::min(node.op.size(), kMaxColumn));
  }
  if (names == 0) return;
  text += fmt::format("\n{}\n", report.devices[device].name);
  for (const PlacedNode& node : report.nodes)
    if (node.device == device)
      text += fmt::format("  {:<{}}  {:<{}}  {}\n", node.name, names, node.op,
                          ops, node.reason);
}

}  // namespace

std::string format_placement(const PlacementReport& report) {
  std::string text;
  for (const PlacedDevice& device : report.devices)
    text += fmt::format(
        "{:<12}{}: {}, busy {:.1f} us, {:.0f}% of its capacity "
        "({} at once)\n",
        "device", device.name, counted(device.nodes, "node"), device.busy_us,
        100 * device.share, counted(size_t(device.kernels_at_once), "kernel"));
  text += fmt::format("{:<12}{:.1f} us, as simulated\n", "makespan",
                      report.makespan_us);
  if (report.measured)
    text += fmt::format("{:<12}{:.1f} us, median of {}\n", "measured",
                        report.measured->median_us,
                        counted(size_t(report.measured->runs), "run"));
  text += fmt::format("{:<12}{}, {:.0f} bytes\n", "transfers",
                      report.transfers.size(), report.transferred_bytes);
  for (const std::string& note : report.notes)
    text += fmt::format("{:<12}{}\n", "note", note);
  for (const std::string& warning : report.warnings)
    text += fmt::format("{:<12}{}\n", "warning", warning);
  for (size_t device = 0; device < report.devices.size(); ++device)
    add_device(report, device, text);
  return text;
}

std::string format_placement_json(const PlacementReport& report) {
  ReportJson devices = ReportJson::array(), nodes = ReportJson::array(),
             transfers = ReportJson::array();
  const auto name = [&](size_t device) { return report.devices[device].name; };
  for (const PlacedDevice& device : report.devices)
    devices.push_back({{"name", device.name},
                       {"nodes", device.nodes},
                       {"kernels_at_once", device.kernels_at_once},
                       {"busy_us", device.busy_us},
                       {"share", device.share}});
  for (const PlacedNode& node : report.nodes)
    nodes.push_back({{"name", node.name},
                     {"op", node.op},
                     {"device", name(node.device)},
                     {"frame", node.frame},
                     {"reason", node.reason},
                     {"start_us", node.start_us},
                     {"finish_us", node.finish_us}});
  for (const PlacedTransfer& transfer : report.transfers)
    transfers.push_back({{"tensor", transfer.tensor},
                         {"from", name(transfer.from)},
                         {"to", name(transfer.to)},
                         {"bytes", transfer.bytes},
                         {"start_us", transfer.start_us},
                         {"finish_us", transfer.finish_us}});
  ReportJson root = {{"makespan_us", report.makespan_us},
                     {"transferred_bytes", report.transferred_bytes},
                     {"devices", std::move(devices)},
                     {"nodes", std::move(nodes)},
                     {"transfers", std::move(transfers)},
                     {"notes", report.notes},
                     {"warnings", report.warnings}};
  if (report.measured)
    root["measured"] = {{"runs", report.measured->runs},
                        {"median_us", report.measured->median_us}};
  return root.dump(-1, ' ', false, ReportJson::error_handler_t::replace) + "\n";
}

}  // namespace tagflow::apps
