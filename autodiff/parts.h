// Parts: what of a graph is computed again for its gradient.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/paths.h"
#include "graph/functions/traits.h"

namespace tagflow::autodiff {

// Nodes by their ids.
class NodeFlags {
 public:
  NodeFlags() = default;
  explicit NodeFlags(size_t end_id) : flags_(end_id) {}
  bool has(const Node& node) const {
    return node.id() < flags_.size() && flags_[node.id()];
  }
  void set(const Node& node, bool flag = true) { flags_[node.id()] = flag; }

 private:
  std::vector<bool> flags_;
};

// Which nodes run once, however often what is around them is computed: the
// stateful ones, with what reads a reference or is fed. A TensorArray is an
// exception where it is made within: then it is made again. Thread-compatible.
class Stateful {
 public:
  // `analysis` outlives this.
  explicit Stateful(Analysis& analysis)
      : analysis_(analysis), traits_(analysis.graph().library()) {}
  // `within` are the nodes that are computed again.
  bool runs_once(const Node& node, const NodeFlags& within);

 private:
  const Analysis& analysis_;
  graph::LibraryTraits traits_;
};

// Note [Parts]
// A part is what a checkpoint() has made, or a call of it that was lowered: the
// nodes of one name in kCheckpointAttr, the loops that these are in, and what
// is between them. All is in one frame, or in loops within that.
//
// Invariants:
//   1. No path leads out of a part and back into it, but by nodes that run
//      once: so a walk visits it as one node, which reads what comes in.
//   2. What comes out is live in the same cases, in which what comes in is live
//      too: so its gradient is a call.
// Where these cannot be had, there is no part: the nodes are nodes as all.
struct Part {
  std::string name;
  FrameId frame = FrameId::kRoot;
  NodeFlags members;
  std::vector<Node*> nodes;       // the members
  std::vector<Endpoint> inputs;   // on paths, read by members
  std::vector<Endpoint> outputs;  // on paths, of members of the frame
  Conditions::Set live = Conditions::kNone;  // of outputs
};

// The parts of one graph.
class Parts {
 public:
  // An error of the graph.
  static Result<Parts> find(Analysis& analysis, const Paths& paths,
                            std::span<const Endpoint> xs,
                            std::span<const Endpoint> ys);

  // The part that the node is in; null where there is none.
  const Part* of(const Node& node) const {
    if (node.id() >= part_of_.size() || part_of_[node.id()] == 0)
      return nullptr;
    return &parts_[part_of_[node.id()] - 1];
  }

 private:
  class Finder;

  std::vector<Part> parts_;
  std::vector<uint32_t> part_of_;  // by node id; 0: none
};

}  // namespace tagflow::autodiff
