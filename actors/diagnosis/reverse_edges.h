// The edges of a frame, followed backwards: for messages that say why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "actors/plan/plan.h"

namespace tagflow::actors {

// Where an edge starts: a port of a node, or an arrival.
struct Origin {
  bool is_arrival = false;
  uint32_t index = 0;  // of the node or the arrival
  uint32_t port = 0;   // num_outputs for the control port
  EdgeItem edge;
};

// The edges of a frame, backwards.
class ReverseEdges {
 public:
  explicit ReverseEdges(const FramePlan& plan)
      : plan_(plan), into_node_(plan.nodes.size()) {
    for (uint32_t n = 0; n < plan.nodes.size(); ++n)
      for (uint32_t p = 0; p <= plan.nodes[n].num_outputs; ++p)
        add(plan.ports[plan.nodes[n].first_port + p], {false, n, p, {}});
    for (uint32_t a = 0; a < plan.arrivals.size(); ++a)
      add(plan.arrivals[a].edges, {true, a, 0, {}});
  }

  const std::vector<Origin>& into_node(uint32_t node) const {
    return into_node_[node];
  }
  std::vector<Origin> into_fetch(uint32_t fetch) const {
    return select([&](const EdgeItem& edge) {
      return edge.kind == EdgeKind::kFetch && edge.target == fetch;
    });
  }
  std::vector<Origin> into_exit(size_t exit) const {
    return select([&](const EdgeItem& edge) {
      return edge.kind == EdgeKind::kExit && edge.target == exit;
    });
  }
  // The origins of all NextIterations; the edge says of which.
  std::vector<Origin> into_next() const {
    return select(
        [&](const EdgeItem& edge) { return edge.kind == EdgeKind::kNext; });
  }
  std::vector<Origin> into_child(uint32_t child) const {
    return select([&](const EdgeItem& edge) {
      return edge.kind == EdgeKind::kEnter && edge.slot == child;
    });
  }

 private:
  void add(const PortItem& port, Origin origin) {
    for (uint32_t i = 0; i < port.count; ++i) {
      origin.edge = plan_.edges[port.begin + i];
      switch (origin.edge.kind) {
        case EdgeKind::kInput:
        case EdgeKind::kControl:
        case EdgeKind::kLiveControl:
        case EdgeKind::kMergeInput:
          into_node_[origin.edge.target].push_back(origin);
          break;
        default:
          elsewhere_.push_back(origin);
      }
    }
  }
  template <class F>
  std::vector<Origin> select(F wanted) const {
    std::vector<Origin> found;
    for (const Origin& origin : elsewhere_)
      if (wanted(origin.edge)) found.push_back(origin);
    return found;
  }

  const FramePlan& plan_;
  std::vector<std::vector<Origin>> into_node_;
  std::vector<Origin> elsewhere_;  // of edges that lead out of the iteration
};

// Which exit of which child frame of `frame` an Exit node is.
struct ExitPlace {
  uint32_t child = 0;
  size_t exit = 0;
};

// The place of the Exit `node`; none if `frame` is not its parent frame.
inline std::optional<ExitPlace> find_exit(const Plan& plan,
                                          const FramePlan& frame,
                                          const graph::Node& node) {
  for (uint32_t c = 0; c < frame.children.size(); ++c) {
    const FramePlan& child = plan.frames[size_t(frame.children[c])];
    for (size_t e = 0; e < child.exits.size(); ++e)
      if (child.exits[e].node == &node) return ExitPlace{c, e};
  }
  return std::nullopt;
}

}  // namespace tagflow::actors
