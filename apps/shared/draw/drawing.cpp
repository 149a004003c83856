#include "apps/shared/draw/drawing.h"

#include <algorithm>
#include <array>
#include <map>

namespace tagflow::apps::draw {
namespace {

constexpr size_t kMaxDetail = 18;
constexpr size_t kMaxShortValue = 12;
constexpr size_t kMaxLongValue = 160;
constexpr int kElementsInLine = 12;

NodeStyle style_of(const graph::Node& node) {
  if (node.is_switch()) return NodeStyle::kSwitch;
  if (node.is_merge()) return NodeStyle::kMerge;
  if (node.is_enter() || node.is_exit() || node.is_next_iteration() ||
      node.is_loop_cond()) {
    return NodeStyle::kLoop;
  }
  if (node.is_const()) return NodeStyle::kConstant;
  if (node.op() == "_Send" || node.op() == "_Recv") return NodeStyle::kTransfer;
  if (node.op() == "Placeholder" || node.op() == "_Arg") {
    return NodeStyle::kInput;
  }
  return NodeStyle::kKernel;
}

std::string detail_of(const graph::Node& node, NodeStyle style) {
  if (style == NodeStyle::kConstant) {
    const Result<Tensor> value = node.attr<Tensor>("value");
    return value.ok() ? short_value(*value) : "";
  }
  if (style != NodeStyle::kInput || node.num_outputs() == 0) return "";
  PartialShape shape = node.output_shape(0);
  const Result<PartialShape> declared = node.attr<PartialShape>("shape");
  if (!shape.has_rank() && declared.ok()) shape = *declared;
  return shorten_text(
      dtype_name(node.output_dtypes()[0]) +
          (shape.has_rank() && shape.rank() == 0 ? "" : shape.to_string()),
      kMaxDetail);
}

bool is_continuation(char byte) { return (uint8_t(byte) & 0xc0) == 0x80; }

size_t count_characters(std::string_view text) {
  return size_t(std::ranges::count_if(
      text, [](char byte) { return !is_continuation(byte); }));
}

}  // namespace

std::string shorten_name(std::string_view name, size_t length) {
  if (count_characters(name) <= length) return std::string(name);
  size_t begin = name.size();
  for (size_t kept = 0; kept + 1 < length && begin > 0;) {
    if (!is_continuation(name[--begin])) ++kept;
  }
  return "…" + std::string(name.substr(begin));
}

std::string shorten_text(std::string_view text, size_t length) {
  if (count_characters(text) <= length) return std::string(text);
  size_t end = 0;
  for (size_t kept = 0; end < text.size(); ++end) {
    if (!is_continuation(text[end]) && kept++ + 1 == length) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string short_value(const Tensor& value) {
  if (!value.valid()) return "none";
  if (value.num_elements() > 3) {
    return shorten_text(value.describe(), kMaxShortValue);
  }
  const std::string text = value.to_string(3).substr(value.describe().size());
  return shorten_text(text.starts_with(' ') ? text.substr(1) : text,
                      kMaxShortValue);
}

std::string long_value(const Tensor& value) {
  return shorten_text(value.to_string(kElementsInLine), kMaxLongValue);
}

DrawnNode draw_node(const graph::Node& node) {
  DrawnNode drawn;
  drawn.name = node.name();
  drawn.op = node.op();
  drawn.style = style_of(node);
  drawn.detail = detail_of(node, drawn.style);
  return drawn;
}

Drawing make_drawing(std::span<graph::Node* const> nodes,
                     const graph::FrameMap& frames) {
  Drawing drawing;
  drawing.frames.clear();
  for (const graph::StaticFrame& frame : frames.frames()) {
    drawing.frames.push_back({frame.name, int(frame.parent)});
  }
  std::unordered_map<const graph::Node*, int> index;
  for (const graph::Node* node : nodes) {
    index.emplace(node, int(drawing.nodes.size()));
    DrawnNode drawn = draw_node(*node);
    drawn.frame =
        int(node->is_enter() ? frames.output_of(*node) : frames.of(*node));
    drawing.nodes.push_back(std::move(drawn));
  }
  for (const graph::Node* node : nodes) {
    const int to = index.at(node);
    for (int i = 0; i < int(node->inputs().size()); ++i) {
      const graph::Endpoint& input = node->inputs()[size_t(i)];
      const auto from = index.find(input.node);
      if (from == index.end()) continue;
      drawing.edges.push_back(
          {from->second, input.port, to, i,
           node->is_merge() && input.node->is_next_iteration()});
    }
    for (const graph::Node* input : node->control_inputs()) {
      const auto from = index.find(input);
      if (from != index.end()) drawing.edges.push_back({from->second, -1, to});
    }
  }
  return drawing;
}

namespace {

// Adds the part's nodes and edges to `whole`, its loops inside the frame.
void append_part(Drawing part, int frame, Drawing& whole) {
  const int first_node = int(whole.nodes.size());
  const int first_frame = int(whole.frames.size()) - 1;
  const auto in_whole = [&](int of_part) {
    return of_part == 0 ? frame : first_frame + of_part;
  };
  for (size_t i = 1; i < part.frames.size(); ++i) {
    DrawnFrame& loop = part.frames[i];
    loop.parent = in_whole(loop.parent);
    whole.frames.push_back(std::move(loop));
  }
  for (DrawnNode& node : part.nodes) {
    node.frame = in_whole(node.frame);
    whole.nodes.push_back(std::move(node));
  }
  for (DrawnEdge edge : part.edges) {
    edge.from += first_node;
    edge.to += first_node;
    whole.edges.push_back(edge);
  }
}

// The key that a Send and its Recv share.
using TransferKey = std::array<std::string, 3>;
TransferKey transfer_key(const graph::Node& node) {
  TransferKey key;
  constexpr std::array<const char*, 3> kAttrs = {"send_device", "recv_device",
                                                 "tensor_name"};
  for (size_t i = 0; i < key.size(); ++i) {
    Result<std::string> text = node.attr<std::string>(kAttrs[i]);
    if (text.ok()) key[i] = std::move(text).value();
  }
  return key;
}

}  // namespace

Drawing make_drawing(std::span<const DrawnPartition> partitions,
                     graph::NodeId first_added) {
  Drawing whole;
  std::map<TransferKey, int> sends;
  std::vector<std::pair<TransferKey, int>> recvs;
  for (const DrawnPartition& partition : partitions) {
    const auto& nodes = partition.graph->nodes();
    Drawing part = make_drawing(nodes, *partition.frames);
    int number = int(whole.nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i, ++number) {
      const graph::Node& node = *nodes[i];
      part.nodes[i].is_added = node.id() >= first_added;
      if (node.op() == "_Send") sends.emplace(transfer_key(node), number);
      if (node.op() == "_Recv") recvs.emplace_back(transfer_key(node), number);
    }
    whole.frames.push_back({partition.name, 0, true});
    const int frame = int(whole.frames.size()) - 1;
    append_part(std::move(part), frame, whole);
  }
  for (const auto& [key, recv] : recvs) {
    const auto send = sends.find(key);
    if (send != sends.end())
      whole.edges.push_back({send->second, -1, recv, -1, false, true});
  }
  return whole;
}

}  // namespace tagflow::apps::draw
