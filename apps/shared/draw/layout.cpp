#include "apps/shared/draw/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/shared/io/json_tensor.h"
#include "apps/shared/runs/child_process.h"

namespace tagflow::apps::draw {
namespace {

constexpr double kPointsPerInch = 72;
constexpr size_t kMaxTitle = 26;

// Estimates of text's width in pixels, for the widest of usual fonts.
double width_of(const Drawing& drawing, const DrawnNode& node) {
  constexpr double kTitleCharacter = 7.3, kSubtitleCharacter = 6.2;
  constexpr double kPadding = 18, kMinimum = 54;
  const auto characters = [](const std::string& text) {
    return double(std::ranges::count_if(
        text, [](char byte) { return (uint8_t(byte) & 0xc0) != 0x80; }));
  };
  const double widest =
      std::max(characters(title_of(drawing, node)) * kTitleCharacter,
               characters(subtitle_of(node)) * kSubtitleCharacter);
  const bool is_slanted =
      node.style == NodeStyle::kSwitch || node.style == NodeStyle::kMerge;
  return std::max(kMinimum, widest + kPadding + (is_slanted ? 14 : 0));
}

// A text in DOT's double quotes. Invalid UTF-8, which dot rejects, is replaced.
std::string quote(std::string_view text) {
  const auto valid = nlohmann::json::parse(io::json_string(std::string(text)));
  std::string quoted = "\"";
  for (const char c : valid.get_ref<const std::string&>()) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += uint8_t(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

std::string_view shape_of(NodeStyle style) {
  switch (style) {
    case NodeStyle::kSwitch:
      return "trapezium";
    case NodeStyle::kMerge:
      return "invtrapezium";
    case NodeStyle::kConstant:
    case NodeStyle::kInput:
      return "ellipse";
    default:
      return "box";
  }
}

void add_node(const Drawing& drawing, size_t i, std::string& text) {
  constexpr double kHeight = 36;
  const DrawnNode& node = drawing.nodes[i];
  const std::string title = quote(title_of(drawing, node));
  const std::string subtitle = quote(subtitle_of(node));
  // "\n" between the two quoted lines.
  text += fmt::format(
      "n{} [shape={}, width={:.3f}, height={:.3f}, label={}\\n{}, tooltip={}];"
      "\n",
      i, shape_of(node.style), width_of(drawing, node) / kPointsPerInch,
      kHeight / kPointsPerInch, title.substr(0, title.size() - 1),
      subtitle.substr(1), quote(node.name));
}

// A frame's nodes, and the frames in it.
void add_frame(const Drawing& drawing, int frame,
               const std::vector<std::vector<int>>& children,
               const std::vector<std::vector<size_t>>& nodes,
               std::string& text) {
  if (frame > 0) {
    const DrawnFrame& drawn = drawing.frames[size_t(frame)];
    text += fmt::format(
        "subgraph cluster_{} {{\nlabel={}; labeljust=l; margin=14;\n", frame,
        quote(shorten_name(drawn.name, 60)));
    // Reserves room for the whole name, as wide as it is drawn.
    if (drawn.is_partition) text += "fontsize=14;\n";
  }
  for (const size_t node : nodes[size_t(frame)]) add_node(drawing, node, text);
  for (const int child : children[size_t(frame)]) {
    add_frame(drawing, child, children, nodes, text);
  }
  if (frame > 0) text += "}\n";
}

std::string_view style_of(const DrawnEdge& edge) {
  if (edge.is_transfer) return ", style=dashed, color=orange";
  return edge.is_control() ? ", style=dashed" : "";
}

// The numbers of "1.5,2" or "e,3,4 5,6"; empty if there are none.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double number = 0;
    const auto [next, code] = std::from_chars(at, end, number);
    if (code == std::errc()) numbers.push_back(number);
    at = code == std::errc() ? next : at + 1;
  }
  return numbers;
}

// The point after this many thirds of the way.
Point between(const Point& from, const Point& to, int thirds) {
  return {from.x + (to.x - from.x) * thirds / 3,
          from.y + (to.y - from.y) * thirds / 3};
}

// The curve that an edge's "pos" describes, with its arrow's tip, if any.
std::vector<Point> curve_of(const std::string& pos, double height) {
  std::vector<Point> start, end, curve;
  size_t at = 0;
  while (at < pos.size()) {
    const size_t space = std::min(pos.find(' ', at), pos.size());
    const std::string word = pos.substr(at, space - at);
    at = space + 1;
    const std::vector<double> numbers = numbers_of(word);
    if (numbers.size() != 2) continue;
    const Point point{numbers[0], height - numbers[1]};
    std::vector<Point>& part =
        word[0] == 's' ? start : (word[0] == 'e' ? end : curve);
    part.push_back(point);
  }
  if (curve.size() < 4) return {};
  // The tip lies beyond the curve: adds a straight segment.
  for (const Point& tip : end) {
    const Point from = curve.back();
    curve.insert(curve.end(),
                 {between(from, tip, 1), between(from, tip, 2), tip});
  }
  for (const Point& tip : start) {
    const Point to = curve.front();
    curve.insert(curve.begin(),
                 {tip, between(tip, to, 1), between(tip, to, 2)});
  }
  return curve;
}

// Maps the objects of dot's output to those of the drawing.
class LayoutReader {
 public:
  explicit LayoutReader(const Drawing& drawing) : drawing_(drawing) {
    layout_.nodes.resize(drawing.nodes.size());
    layout_.edges.resize(drawing.edges.size());
    layout_.frames.resize(drawing.frames.size());
  }

  bool read(const nlohmann::json& root) {
    const std::vector<double> bounds =
        numbers_of(root.at("bb").get<std::string>());
    if (bounds.size() != 4) return false;
    layout_.width = bounds[2];
    layout_.height = bounds[3];
    layout_.frames[0] = {0, 0, bounds[2], bounds[3]};
    size_t nodes = 0;
    if (root.contains("objects")) {
      for (const auto& object : root["objects"]) {
        const std::string name = object.at("name").get<std::string>();
        if (name.starts_with("cluster_")) {
          if (!read_frame(name, object)) return false;
        } else if (name.starts_with('n')) {
          if (!read_node(name, object)) return false;
          ++nodes;
        }
      }
    }
    if (root.contains("edges")) {
      for (const auto& edge : root["edges"]) {
        if (!read_edge(edge)) return false;
      }
    }
    return nodes == drawing_.nodes.size();
  }

  Layout take() { return std::move(layout_); }

 private:
  // The number behind a prefix, below `limit`.
  static std::optional<size_t> index_in(std::string_view text, size_t prefix,
                                        size_t limit) {
    size_t index = 0;
    const char* const end = text.data() + text.size();
    if (text.size() <= prefix) return std::nullopt;
    const auto [at, code] = std::from_chars(text.data() + prefix, end, index);
    if (code != std::errc() || at != end || index >= limit) return std::nullopt;
    return index;
  }

  bool read_frame(const std::string& name, const nlohmann::json& object) {
    const auto index = index_in(name, 8, layout_.frames.size());
    if (!index) return false;
    const auto box = numbers_of(object.value("bb", ""));
    // A frame without nodes has no box.
    if (box.size() != 4) return true;
    layout_.frames[*index] = {box[0], layout_.height - box[3], box[2],
                              layout_.height - box[1]};
    return true;
  }

  bool read_node(const std::string& name, const nlohmann::json& object) {
    const auto index = index_in(name, 1, layout_.nodes.size());
    const auto pos = numbers_of(object.at("pos").get<std::string>());
    const auto width = numbers_of(object.at("width").get<std::string>());
    const auto height = numbers_of(object.at("height").get<std::string>());
    if (!index || pos.size() != 2 || width.empty() || height.empty()) {
      return false;
    }
    const double dx = width[0] * kPointsPerInch / 2;
    const double dy = height[0] * kPointsPerInch / 2;
    const double y = layout_.height - pos[1];
    layout_.nodes[*index] = {pos[0] - dx, y - dy, pos[0] + dx, y + dy};
    return true;
  }

  bool read_edge(const nlohmann::json& object) {
    const auto index =
        index_in(object.at("id").get<std::string>(), 1, layout_.edges.size());
    if (!index) return false;
    std::vector<Point> curve =
        curve_of(object.value("pos", ""), layout_.height);
    // Back edges were reversed for dot.
    if (drawing_.edges[*index].is_back) std::ranges::reverse(curve);
    layout_.edges[*index] = std::move(curve);
    return true;
  }

  const Drawing& drawing_;
  Layout layout_;
};

}  // namespace

std::string title_of(const Drawing& drawing, const DrawnNode& node) {
  const std::string& frame = drawing.frames[size_t(node.frame)].name;
  size_t shared = 0;  // up to and with the last '/'
  for (size_t i = 0; i < std::min(frame.size(), node.name.size()); ++i) {
    if (frame[i] != node.name[i]) break;
    if (frame[i] == '/') shared = i + 1;
  }
  return shorten_name(std::string_view(node.name).substr(shared), kMaxTitle);
}

std::string subtitle_of(const DrawnNode& node) {
  return node.detail.empty() ? shorten_text(node.op, kMaxTitle)
                             : node.op + " " + node.detail;
}

std::string to_dot(const Drawing& drawing) {
  std::vector<std::vector<int>> children(drawing.frames.size());
  for (int i = 1; i < int(drawing.frames.size()); ++i) {
    children[size_t(drawing.frames[size_t(i)].parent)].push_back(i);
  }
  std::vector<std::vector<size_t>> nodes(drawing.frames.size());
  for (size_t i = 0; i < drawing.nodes.size(); ++i) {
    nodes[size_t(drawing.nodes[i].frame)].push_back(i);
  }
  const bool is_cut =
      std::ranges::any_of(drawing.frames, &DrawnFrame::is_partition);
  std::string text = "digraph tagflow {\n";
  // Senders are above receivers across partitions, too.
  if (is_cut) text += "newrank=true;\n";
  text +=
      "graph [ranksep=0.42, nodesep=0.22, nslimit=2, nslimit1=2, "
      "fontname=\"Helvetica\", "
      "fontsize=13];\n"
      "node [fixedsize=true, fontname=\"Helvetica\", fontsize=11];\n"
      "edge [arrowsize=0.6];\n";
  add_frame(drawing, 0, children, nodes, text);
  for (size_t i = 0; i < drawing.edges.size(); ++i) {
    const DrawnEdge& edge = drawing.edges[i];
    // A reversed back edge points up, and does not affect the ranks of other
    // nodes.
    text += edge.is_back
                ? fmt::format("n{} -> n{} [id=e{}, dir=back, color=blue];\n",
                              edge.to, edge.from, i)
                : fmt::format("n{} -> n{} [id=e{}{}];\n", edge.from, edge.to, i,
                              style_of(edge));
  }
  return text + "}\n";
}

Result<Layout> parse_layout(std::string_view json, const Drawing& drawing) {
  const auto root = nlohmann::json::parse(json, nullptr, false);
  LayoutReader reader(drawing);
  bool is_good = false;
  try {
    is_good = root.is_object() && reader.read(root);
  } catch (const nlohmann::json::exception&) {
    // A member is missing, or is of another type.
  }
  if (!is_good) {
    return error(Code::kDataLoss,
                 "[draw] dot did not return a layout of these {} nodes",
                 drawing.nodes.size());
  }
  return reader.take();
}

Status check_size(const Drawing& drawing) {
  if (drawing.nodes.size() <= kMaxDrawnNodes &&
      drawing.edges.size() <= kMaxDrawnEdges) {
    return {};
  }
  return error(Code::kResourceExhausted,
               "[draw] {} nodes and {} edges are too many to draw: the limits "
               "are {} and {}. With --fetch, only the needed nodes are drawn",
               drawing.nodes.size(), drawing.edges.size(), kMaxDrawnNodes,
               kMaxDrawnEdges);
}

Result<Layout> lay_out(const Drawing& drawing, std::chrono::milliseconds limit,
                       const std::string& program) {
  TAGFLOW_RETURN_IF_ERROR(check_size(drawing));
  Result<std::string> json =
      run_filter({program, "-q", "-Tjson"}, to_dot(drawing), limit);
  if (!json.ok() && json.status().code() == Code::kNotFound) {
    return error(Code::kFailedPrecondition,
                 "[draw] drawing needs \"{}\" of Graphviz, which is not "
                 "installed: apt-get install graphviz",
                 program);
  }
  TAGFLOW_RETURN_IF_ERROR(json.status());
  return parse_layout(*json, drawing);
}

}  // namespace tagflow::apps::draw
