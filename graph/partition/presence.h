// In which iterations of its loop a node has something to say.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/frames.h"
#include "graph/graph.h"

namespace tagflow::graph {

// The iterations of a frame in which a node sends tokens, dead or not. Sets
// of two things, the first iteration and all later ones.
enum class Presence : uint8_t { kNever = 0, kFirst = 1, kLater = 2, kAlways };

inline Presence operator&(Presence a, Presence b) {
  return Presence(uint8_t(a) & uint8_t(b));
}
inline Presence operator|(Presence a, Presence b) {
  return Presence(uint8_t(a) | uint8_t(b));
}

// Of each node of a graph. An Enter brings something to the first iteration,
// or to all; a NextIteration to all but the first; a Merge wherever one of its
// inputs does, any other node where all do. As far as the edges tell, and they
// do not tell of a back edge that is dead while the loop goes on, nor of a
// Merge of which one input is dead and another never comes. Immutable.
class PresenceMap {
 public:
  // InvalidArgument where edges form an illegal cycle. REQUIRES: `frames` are
  // the graph's.
  static Result<PresenceMap> build(const Graph& graph, const FrameMap& frames);

  // In the frame in which the node's outputs arrive.
  Presence of(const Node& node) const { return of_[node.id()]; }
  // The iterations that the frame can have: no later ones without back edges.
  Presence possible(FrameId frame) const { return possible_[size_t(frame)]; }
  // In which iterations of its parent the frame is entered.
  Presence of_frame(FrameId frame) const { return of_frame_[size_t(frame)]; }

 private:
  std::vector<Presence> of_;  // by node id
  // By frame.
  std::vector<Presence> possible_;
  std::vector<Presence> of_frame_;
};

}  // namespace tagflow::graph
