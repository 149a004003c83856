#include "apps/tagflow/stepper/node_table.h"

#include "actors/plan/tag.h"

namespace tagflow::apps::stepper {
namespace {

constexpr size_t kMaxAttr = 100;

NodeNote note_of(const graph::Node& node) {
  NodeNote note;
  for (const auto& [name, value] : node.attrs()) {
    const Tensor* tensor = value.get_if<Tensor>();
    note.attrs.push_back(name + " = " +
                         draw::shorten_text(tensor != nullptr
                                                ? draw::long_value(*tensor)
                                                : value.to_string(),
                                            kMaxAttr));
  }
  if (!node.device().empty()) note.attrs.push_back("device " + node.device());
  for (int i = 0; i < node.num_outputs(); ++i) {
    note.outputs.push_back(dtype_name(node.output_dtypes()[size_t(i)]) +
                           node.output_shape(i).to_string());
  }
  return note;
}

}  // namespace

const NodeTable::Frame& NodeTable::frame(std::string_view name,
                                         std::string_view device,
                                         const actors::IterationView& view) {
  device_ = device;
  const auto [it, is_new] = frames_.try_emplace(std::string(name) + device_);
  Frame& frame = it->second;
  if (!is_new) return frame;
  std::vector<const graph::Node*> nodes;
  for (size_t i = 0; i < view.num_nodes(); ++i) nodes.push_back(&view.node(i));
  frame.drawn = drawn_frame(name, 0);
  add(nodes, frame.drawn);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int number = numbers_.at(nodes[i]);
    frame.node_of.push_back(number);
    frame.fires.emplace(number, i);
  }
  return frame;
}

int NodeTable::number(const graph::Node& node, std::string_view name,
                      std::string_view device) {
  device_ = device;
  const auto it = numbers_.find(&node);
  if (it != numbers_.end()) return it->second;
  add({&node}, drawn_frame(name, 0));
  return numbers_.at(&node);
}

int NodeTable::drawn_frame(std::string_view name, int parent) {
  auto& frames = recording_.drawing.frames;
  const bool is_whole_drawing = name.empty() && device_.empty();
  const std::string full =
      is_whole_drawing ? std::string() : actors::frame_label(name) + device_;
  const auto [it, is_new] = drawn_frames_.try_emplace(full, int(frames.size()));
  if (is_new) frames.push_back({full, parent});
  return it->second;
}

void NodeTable::add(const std::vector<const graph::Node*>& roots, int base) {
  const size_t first = nodes_.size();
  const auto meet = [this](const graph::Node* node) {
    if (node == nullptr ||
        !numbers_.try_emplace(node, int(nodes_.size())).second)
      return;
    nodes_.push_back(node);
    recording_.drawing.nodes.push_back(draw::draw_node(*node));
    recording_.drawing.nodes.back().frame = -1;
    recording_.notes.push_back(note_of(*node));
  };
  for (const graph::Node* root : roots) meet(root);
  for (size_t i = first; i < nodes_.size(); ++i) {
    for (const graph::Endpoint& input : nodes_[i]->inputs()) meet(input.node);
    for (const graph::Node* input : nodes_[i]->control_inputs()) meet(input);
  }
  to_.resize(nodes_.size());
  from_.resize(nodes_.size());
  for (size_t i = first; i < nodes_.size(); ++i) add_edges(int(i));
  for (size_t i = first; i < nodes_.size(); ++i) place(int(i), base);
  // New readers of nodes that were already known.
  for (size_t i = first; i < nodes_.size(); ++i) {
    if (recording_.drawing.nodes[i].frame >= 0) continue;
    const int frame =
        nodes_[i]->is_enter() ? entered_frame(*nodes_[i], base) : base;
    recording_.drawing.nodes[i].frame = frame;
  }
}

int NodeTable::entered_frame(const graph::Node& enter, int parent) {
  const Result<std::string> name = enter.attr<std::string>("frame_name");
  return drawn_frame(name.ok() ? *name : "?", parent);
}

void NodeTable::add_edges(int to) {
  const graph::Node& node = *nodes_[size_t(to)];
  auto& edges = recording_.drawing.edges;
  const auto add_edge = [&](const draw::DrawnEdge& edge) {
    to_[size_t(to)].push_back(int(edges.size()));
    from_[size_t(edge.from)].push_back(int(edges.size()));
    edges.push_back(edge);
  };
  for (int i = 0; i < int(node.inputs().size()); ++i) {
    const graph::Endpoint& input = node.inputs()[size_t(i)];
    if (input.node == nullptr) continue;
    add_edge({numbers_.at(input.node), input.port, to, i,
              node.is_merge() && input.node->is_next_iteration()});
  }
  for (const graph::Node* input : node.control_inputs()) {
    add_edge({numbers_.at(input), -1, to});
  }
}

// Walks on from a node without inputs: its readers are in the same frame,
// except behind an Enter or an Exit.
void NodeTable::place(int start, int base) {
  auto& nodes = recording_.drawing.nodes;
  if (!edges_to(start).empty()) return;
  // Node, and the frame that its inputs arrive in.
  std::vector<std::pair<int, int>> to_do{{start, base}};
  while (!to_do.empty()) {
    const auto [number, arrives_in] = to_do.back();
    to_do.pop_back();
    if (nodes[size_t(number)].frame >= 0) continue;
    const graph::Node& node = *nodes_[size_t(number)];
    int drawn = arrives_in, sends_to = arrives_in;
    if (node.is_enter()) {
      drawn = sends_to = entered_frame(node, arrives_in);
    } else if (node.is_exit()) {
      sends_to = recording_.drawing.frames[size_t(arrives_in)].parent;
    }
    nodes[size_t(number)].frame = drawn;
    for (const int edge_number : edges_from(number)) {
      to_do.emplace_back(edge(edge_number).to, sends_to);
    }
  }
}

}  // namespace tagflow::apps::stepper
