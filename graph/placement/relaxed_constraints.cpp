#include "graph/placement/relaxed_constraints.h"

#include <algorithm>

namespace tagflow::graph {
namespace {

// How many nodes a warning names, and how many warnings there are.
constexpr size_t kNamed = 3;
constexpr size_t kMaxWarnings = 100;

}  // namespace

void RelaxedConstraints::add(const Node& node, std::string_view reason,
                             Outcome outcome) {
  if (const auto known = group_of_.find(&node); known != group_of_.end()) {
    Group& before = groups_[known->second];
    if (outcome != Outcome::kWithOthers || before.outcome == outcome) return;
    std::erase(before.nodes, &node);
  }
  const auto [it, is_new] = index_.emplace(
      fmt::format("{}\n{}\n{}", node.device(), reason, int(outcome)),
      groups_.size());
  if (is_new) groups_.push_back({std::string(reason), outcome, {}});
  groups_[it->second].nodes.push_back(&node);
  group_of_[&node] = it->second;
}

std::vector<std::string> RelaxedConstraints::warnings() const {
  std::vector<std::string> warnings;
  size_t left = 0;
  for (const auto& [reason, outcome, nodes] : groups_) {
    if (nodes.empty()) continue;
    if (warnings.size() == kMaxWarnings) {
      left += nodes.size();
      continue;
    }
    const bool one = nodes.size() == 1;
    std::string names;
    for (size_t i = 0; i < std::min(nodes.size(), kNamed); ++i) {
      const bool is_last = i > 0 && i + 1 == nodes.size();
      names += i == 0 ? "" : is_last ? " and " : ", ";
      names += fmt::format("\"{}\"", nodes[i]->name());
    }
    if (nodes.size() > kNamed)
      names += fmt::format(" and {} more", nodes.size() - kNamed);
    std::string text =
        fmt::format("{} {} {} for \"{}\", {}", one ? "node" : "nodes", names,
                    one ? "asks" : "ask", nodes[0]->device(), reason);
    if (outcome != Outcome::kWithOthers)
      text += fmt::format(
          ", and {} placed {}", one ? "is" : "are",
          outcome == Outcome::kOnCpu ? "on a CPU" : "where there is a kernel");
    warnings.push_back(std::move(text));
  }
  if (left > 0)
    warnings.push_back(
        fmt::format("the constraints of {} more nodes gave way", left));
  return warnings;
}

}  // namespace tagflow::graph
