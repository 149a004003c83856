#include "apps/tagflow/run_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "apps/shared/program/terminal.h"
#include "graph/counted.h"

namespace tagflow::apps {
namespace {

using actors::NodeStats;

constexpr size_t kMostLines = 20;  // of each table

struct Line {
  std::string name;
  size_t nodes = 0;
  uint64_t firings = 0;
  int64_t nanoseconds = 0;
  uint64_t bytes = 0, most_bytes = 0;

  void add(const NodeStats& node) {
    ++nodes;
    firings += node.firings;
    nanoseconds += node.nanoseconds;
    bytes += node.bytes;
    most_bytes = std::max(most_bytes, node.most_bytes);
  }
};

// Kernels of an accelerator count for the op of the node that launched them.
std::vector<Line> by_op(const std::vector<NodeStats>& nodes) {
  std::map<std::string, std::string> ops;  // by the names of nodes
  for (const NodeStats& node : nodes)
    if (!node.op.empty()) ops.emplace(node.name, node.op);
  std::map<std::string, Line> lines;
  for (const NodeStats& node : nodes) {
    const auto op = ops.find(node.name);
    const std::string name = op == ops.end() ? node.name : op->second;
    Line& line = lines[name];
    line.name = name;
    line.add(node);
  }
  std::vector<Line> all;
  for (auto& [name, line] : lines) all.push_back(std::move(line));
  return all;
}

std::vector<Line> by_node(const std::vector<NodeStats>& nodes) {
  std::set<std::string_view> devices;
  for (const NodeStats& node : nodes) devices.insert(node.device);
  std::vector<Line> lines;
  for (const NodeStats& node : nodes) {
    Line& line = lines.emplace_back();
    line.name = node.name;
    if (!node.op.empty()) line.name += ": " + node.op;
    if (devices.size() > 1) line.name += " on " + node.device;
    line.add(node);
  }
  return lines;
}

void add_table(const char* what, std::vector<Line> lines, bool has_memory,
               std::string& text) {
  int64_t all = 0;
  size_t longest = std::string_view(what).size();
  std::ranges::stable_sort(lines, std::greater(), &Line::nanoseconds);
  for (const Line& line : lines) all += line.nanoseconds;
  const size_t shown = std::min(lines.size(), kMostLines);
  for (size_t i = 0; i < shown; ++i) {
    lines[i].name = printable_name(lines[i].name);
    longest = std::max(longest, lines[i].name.size());
  }
  const size_t width = column_width(longest);
  text += fmt::format("{:<{}}  {:>6}  {:>9}  {:>12}  {:>5}", what, width,
                      "nodes", "firings", "time, us", "%");
  text += has_memory
              ? fmt::format("  {:>14}  {:>14}\n", "bytes", "most at once")
              : "\n";
  for (size_t i = 0; i < shown; ++i) {
    const Line& line = lines[i];
    text += fmt::format(
        "{:<{}}  {:>6}  {:>9}  {:>12.1f}  {:>5.1f}", line.name, width,
        line.nodes, line.firings, double(line.nanoseconds) / 1e3,
        all == 0 ? 0 : 100 * double(line.nanoseconds) / double(all));
    text += has_memory
                ? fmt::format("  {:>14}  {:>14}\n", line.bytes, line.most_bytes)
                : "\n";
  }
  if (lines.size() > shown)
    text += fmt::format("and {} more\n", lines.size() - shown);
}

}  // namespace

std::string format_stats(const std::vector<NodeStats>& nodes, bool has_memory,
                         uint64_t dropped) {
  std::string text;
  if (dropped > 0)
    text += fmt::format(
        "warning: the trace had no room for {}, whose time is missing\n",
        counted(dropped, "event"));
  add_table("op", by_op(nodes), has_memory, text);
  text += "\n";
  add_table("node", by_node(nodes), has_memory, text);
  return text;
}

}  // namespace tagflow::apps
