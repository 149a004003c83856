#include "graph/partition/presence.h"

#include "graph/topology.h"

namespace tagflow::graph {

Result<PresenceMap> PresenceMap::build(const Graph& graph,
                                       const FrameMap& frames) {
  PresenceMap map;
  for (const StaticFrame& frame : frames.frames())
    map.possible_.push_back(frame.next_iterations.empty() ? Presence::kFirst
                                                          : Presence::kAlways);
  map.of_.resize(graph.end_id(), Presence::kFirst);
  map.of_frame_.resize(frames.frames().size(), Presence::kAlways);
  if (frames.frames().size() == 1) return map;
  TAGFLOW_ASSIGN(const auto order, topological_order(graph));
  for (const Node* node : order) {
    const FrameId frame = frames.of(*node);
    Presence any = Presence::kNever;
    Presence all = map.possible(frame);
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Presence input = is_back_edge(*node, i)
                                 ? Presence::kLater
                                 : map.of(*node->inputs()[i].node);
      any = any | input;
      if (!node->is_merge()) all = all & input;
    }
    if (node->is_merge()) all = all & any;
    for (const Node* control : node->control_inputs())
      all = all & map.of(*control);
    Presence& made = map.of_[node->id()];
    made = all;
    if (node->is_enter()) {
      const FrameId inner = frames.output_of(*node);
      Presence& entered = map.of_frame_[size_t(inner)];
      entered = entered & all;
      made = map.possible(inner);
      if (!node->is_constant_enter()) made = made & Presence::kFirst;
    } else if (node->is_next_iteration()) {
      made = map.possible(frame) & Presence::kLater;
    } else if (node->is_exit()) {
      made = map.of_frame(frame);
    }
  }
  return map;
}

}  // namespace tagflow::graph
