// The frames of the part of a graph that a run needs. It does not share code
// with graph/analysis/frames.h, which the engine uses.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/node.h"

namespace tagflow::reference {

struct StaticFrame {
  std::string name;
  StaticFrame* parent = nullptr;           // null: the root
  std::vector<const graph::Node*> nodes;   // whose inputs arrive here
  std::vector<const graph::Node*> enters;  // that lead here
  std::map<std::string, std::unique_ptr<StaticFrame>> children;
};

bool is_loop_constant(const graph::Node& node);

// Valid as long as the graph is unchanged.
class StaticFrames {
 public:
  // Gives every node of `needed` its frame. InvalidArgument for what has none.
  Status place(const std::vector<const graph::Node*>& needed);

  StaticFrame& root() { return root_; }
  // Where the node's inputs arrive. REQUIRES: placed.
  StaticFrame* of(const graph::Node& node) const { return frame_.at(&node); }
  // Where its outputs arrive; finds the frames of nodes on the way. An Enter
  // leads into a child, an Exit out to the parent.
  Result<StaticFrame*> output_frame(const graph::Node& node);
  // The place of the node in of(node)->nodes. REQUIRES: placed.
  size_t index(const graph::Node& node) const { return index_.at(&node); }

 private:
  Result<StaticFrame*> frame(const graph::Node& node);

  StaticFrame root_;
  std::unordered_map<const graph::Node*, StaticFrame*> frame_;  // null: asked
  std::unordered_map<const graph::Node*, size_t> index_;
  int depth_ = 0;
};

}  // namespace tagflow::reference
