// Blocks: the subgraphs that are computed again for their gradient.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autodiff/analysis.h"
#include "autodiff/paths.h"
#include "graph/functions/traits.h"

namespace tagflow::autodiff {

// A set of nodes.
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

// Which nodes run once, even if the nodes around them are recomputed:
// stateful nodes, readers of references, and fed nodes. A TensorArray that is
// made within the recomputed nodes is an exception: it is made again.
// Thread-compatible.
class Stateful {
 public:
  // `analysis` outlives this.
  explicit Stateful(Analysis& analysis)
      : analysis_(analysis), traits_(analysis.graph().library()) {}
  // `within` are the nodes that are recomputed.
  bool runs_once(const Node& node, const NodeFlags& within);

 private:
  const Analysis& analysis_;
  graph::LibraryTraits traits_;
};

// Note [Blocks]
// A block is what recompute() builds, or a lowered call of a function with one:
// the nodes with one name in kRecomputeAttr, the loops that they are in, and
// the nodes between them. All are in one frame, or in loops within that frame.
//
// Invariants:
//   1. No path leads out of a block and back into it, except through nodes that
//      run once. So a walk visits the block as one node that reads the inputs.
//   2. All outputs are live in the same cases, and the inputs are live there,
//      too. So the gradient of the block is one call.
// If these do not hold, there is no block: its nodes are treated like all
// others.
struct Block {
  std::string name;
  FrameId frame = FrameId::kRoot;
  NodeFlags members;
  std::vector<Node*> nodes;       // the members
  std::vector<Endpoint> inputs;   // on paths; read by members
  std::vector<Endpoint> outputs;  // on paths, of members of the frame
  Conditions::Set live = Conditions::kNone;  // of outputs
};

// The blocks of one graph.
class Blocks {
 public:
  // An error of the graph.
  static Result<Blocks> find(Analysis& analysis, const Paths& paths,
                             std::span<const Endpoint> xs,
                             std::span<const Endpoint> ys);

  // The block that the node is in, or null.
  const Block* of(const Node& node) const {
    if (node.id() >= block_of_.size() || block_of_[node.id()] == 0)
      return nullptr;
    return &blocks_[block_of_[node.id()] - 1];
  }

 private:
  class Finder;

  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;  // by node id; 0: none
};

}  // namespace tagflow::autodiff
