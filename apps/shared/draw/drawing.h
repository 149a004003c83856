// A drawing of a graph: boxes, arrows between them, frames around them.
// Plain data, without pointers to the graph.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/graph.h"

namespace tagflow::apps::draw {

// The style of a box.
enum class NodeStyle : uint8_t {
  kKernel,
  kConstant,
  kInput,  // Placeholder, function argument
  kSwitch,
  kMerge,
  kLoop,      // Enter, Exit, NextIteration, LoopCond
  kTransfer,  // Send, Recv
};

struct DrawnNode {
  std::string name;
  std::string op;
  std::string detail;  // a constant's value, an input's type; often empty
  NodeStyle style = NodeStyle::kKernel;
  int frame = 0;
  bool is_added = false;  // by the cut into partitions
};

// Indices into nodes. Control edges and transfers have neither port nor slot:
// -1.
struct DrawnEdge {
  int from = 0, port = -1;
  int to = 0, slot = -1;
  bool is_back = false;      // from a NextIteration to its Merge
  bool is_transfer = false;  // from a Send to its Recv

  bool is_control() const { return slot < 0 && !is_transfer; }
};

struct DrawnFrame {
  std::string name;
  int parent = 0;             // earlier in the list; the root's is itself
  bool is_partition = false;  // not a loop, but a device's partition
};

struct Drawing {
  std::vector<DrawnNode> nodes;
  std::vector<DrawnEdge> edges;
  std::vector<DrawnFrame> frames{DrawnFrame{}};  // 0: the root
};

// A box for `node`, without a frame.
DrawnNode draw_node(const graph::Node& node);

// The nodes, in their order, and the edges among them. Enters and Exits are
// drawn inside the loop that they lead into or out of.
Drawing make_drawing(std::span<graph::Node* const> nodes,
                     const graph::FrameMap& frames);

// The part of a graph on one device.
struct DrawnPartition {
  std::string name;
  const graph::Graph* graph = nullptr;
  const graph::FrameMap* frames = nullptr;
};
// All parts side by side, each in a separate frame, with the transfers between
// them. Nodes from the id `first_added` on were added by the cut.
Drawing make_drawing(std::span<const DrawnPartition> partitions,
                     graph::NodeId first_added);

// At most `length` characters of UTF-8: the end of a name, the beginning of
// any other text, with "…" for the rest.
std::string shorten_name(std::string_view name, size_t length);
std::string shorten_text(std::string_view text, size_t length);

// A tensor in about 12 characters ("7", "float[2,3]"), and in one line.
std::string short_value(const Tensor& value);
std::string long_value(const Tensor& value);

}  // namespace tagflow::apps::draw
