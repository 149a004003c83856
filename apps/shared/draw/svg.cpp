#include "apps/shared/draw/svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/utf8.h"

namespace tagflow::apps::draw {
namespace {

constexpr double kBorder = 12;

constexpr std::string_view kStyle = R"(
svg.graph { font-family: "Helvetica Neue", Helvetica, Arial, "Liberation Sans",
  "DejaVu Sans", sans-serif; background: #fff; }
.frame rect { fill: #f4f7fb; stroke: #a9b8cc; }
.frame.odd rect { fill: #fdfaf3; stroke: #ccbd98; }
.frame.partition rect { fill: #fff; stroke: #68707c; stroke-width: 1.6; }
.frame-name { font-size: 12.5px; font-weight: 600; fill: #5b6b80;
  paint-order: stroke; stroke: #f7f9fb; stroke-width: 4px; }
.edge path { fill: none; stroke: #8a93a0; stroke-width: 1.1; }
.edge.control path { stroke-dasharray: 4 3; }
.edge.transfer path { stroke: #d9822b; stroke-width: 1.6;
  stroke-dasharray: 7 4; }
.edge.back path { stroke: #3f6fd1; stroke-width: 1.5; }
.node .box { fill: #fff; stroke: #68707c; stroke-width: 1.1; }
.node.constant .box { fill: #f1f1f1; stroke: #9a9a9a; }
.node.input .box { fill: #e3f4e3; stroke: #5c9c5c; }
.node.switch .box { fill: #fdeccb; stroke: #c58a1b; }
.node.merge .box { fill: #e6e0f6; stroke: #7b62bd; }
.node.loop .box { fill: #dcebfb; stroke: #4b83c3; }
.node.transfer .box { fill: #fce3c8; stroke: #d9822b; }
.node.added .box { stroke-dasharray: 5 2; }
.node text { text-anchor: middle; }
.node .title { font-size: 12px; fill: #1c2430; }
.node .subtitle { font-size: 10px; fill: #66707e; }
)";

std::string_view class_of(NodeStyle style) {
  switch (style) {
    case NodeStyle::kConstant:
      return "node constant";
    case NodeStyle::kInput:
      return "node input";
    case NodeStyle::kSwitch:
      return "node switch";
    case NodeStyle::kMerge:
      return "node merge";
    case NodeStyle::kLoop:
      return "node loop";
    case NodeStyle::kTransfer:
      return "node transfer";
    default:
      return "node kernel";
  }
}

// A box, or for Switch and Merge a trapezium that opens to the side with more
// than one arrow.
std::string outline(const Box& box, NodeStyle style) {
  constexpr double kSlant = 9;
  if (style != NodeStyle::kSwitch && style != NodeStyle::kMerge) {
    const bool is_round =
        style == NodeStyle::kConstant || style == NodeStyle::kInput;
    return fmt::format(
        R"(<rect class="box" x="{:.1f}" y="{:.1f}" width="{:.1f}" )"
        R"(height="{:.1f}" rx="{}"/>)",
        box.left, box.top, box.right - box.left, box.bottom - box.top,
        is_round ? 16 : 4);
  }
  const double top = style == NodeStyle::kSwitch ? kSlant : 0;
  const double bottom = kSlant - top;
  return fmt::format(
      R"(<polygon class="box" points="{:.1f},{:.1f} {:.1f},{:.1f} )"
      R"({:.1f},{:.1f} {:.1f},{:.1f}"/>)",
      box.left + top, box.top, box.right - top, box.top, box.right - bottom,
      box.bottom, box.left + bottom, box.bottom);
}

int depth_of(const Drawing& drawing, size_t frame) {
  int depth = 0;
  for (; frame != 0; frame = size_t(drawing.frames[frame].parent)) ++depth;
  return depth;
}

void add_frames(const Drawing& drawing, const Layout& layout,
                std::string& text) {
  for (size_t i = 1; i < drawing.frames.size(); ++i) {
    const Box& box = layout.frames[i];
    if (box.right <= box.left) continue;
    const DrawnFrame& frame = drawing.frames[i];
    text += fmt::format(
        R"(<g class="frame{}" id="f{}"><title>{} {}</title>)"
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="8"/>)"
        R"(</g>)"
        "\n",
        frame.is_partition              ? " partition"
        : depth_of(drawing, i) % 2 == 0 ? " odd"
                                        : "",
        i, frame.is_partition ? "device" : "frame", escape_markup(frame.name),
        box.left, box.top, box.right - box.left, box.bottom - box.top);
  }
}

// Above the arrows that cross them.
void add_frame_names(const Drawing& drawing, const Layout& layout,
                     std::string& text) {
  for (size_t i = 1; i < drawing.frames.size(); ++i) {
    const Box& box = layout.frames[i];
    if (box.right <= box.left) continue;
    text += fmt::format(
        R"(<text class="frame-name" id="t{}" x="{:.1f}" y="{:.1f}">{}</text>)"
        "\n",
        i, box.left + 10, box.top + 17,
        escape_markup(shorten_name(drawing.frames[i].name, 60)));
  }
}

void add_edges(const Drawing& drawing, const Layout& layout,
               std::string& text) {
  for (size_t i = 0; i < drawing.edges.size(); ++i) {
    const std::vector<Point>& curve = layout.edges[i];
    if (curve.empty()) continue;
    const DrawnEdge& edge = drawing.edges[i];
    std::string path = fmt::format("M{:.1f},{:.1f}C", curve[0].x, curve[0].y);
    for (size_t k = 1; k < curve.size(); ++k) {
      path += fmt::format("{}{:.1f},{:.1f}", k == 1 ? "" : " ", curve[k].x,
                          curve[k].y);
    }
    text += fmt::format(R"(<g class="edge{}{}{}" id="e{}"><path d="{}" )"
                        R"x(marker-end="url(#{})"/></g>)x"
                        "\n",
                        edge.is_control() ? " control" : "",
                        edge.is_transfer ? " transfer" : "",
                        edge.is_back ? " back" : "", i, path,
                        edge.is_back       ? "arrow-back"
                        : edge.is_transfer ? "arrow-transfer"
                                           : "arrow");
  }
}

void add_nodes(const Drawing& drawing, const Layout& layout,
               std::string& text) {
  for (size_t i = 0; i < drawing.nodes.size(); ++i) {
    const DrawnNode& node = drawing.nodes[i];
    const Box& box = layout.nodes[i];
    const double x = (box.left + box.right) / 2;
    const double y = (box.top + box.bottom) / 2;
    text += fmt::format(
        R"(<g class="{}{}" id="n{}"><title>{}: {}</title>{})"
        R"(<text class="title" x="{:.1f}" y="{:.1f}">{}</text>)"
        R"(<text class="subtitle" x="{:.1f}" y="{:.1f}">{}</text></g>)"
        "\n",
        class_of(node.style), node.is_added ? " added" : "", i,
        escape_markup(node.name), escape_markup(node.op),
        outline(box, node.style), x, y - 2,
        escape_markup(title_of(drawing, node)), x, y + 11,
        escape_markup(subtitle_of(node)));
  }
}

}  // namespace

std::string escape_markup(std::string_view text) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string escaped;
  while (!text.empty()) {
    const char c = text[0];
    const size_t length = character_length(text);
    if (length == 0 || (uint8_t(c) < 0x20 && c != '\n' && c != '\t')) {
      escaped += kReplacement;
    } else if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return escaped;
}

std::string_view svg_style() { return kStyle; }

std::string to_svg(const Drawing& drawing, const Layout& layout,
                   bool is_alone) {
  const double width = layout.width + 2 * kBorder;
  const double height = layout.height + 2 * kBorder;
  std::string text =
      fmt::format(R"(<svg class="graph" xmlns="http://www.w3.org/2000/svg" )"
                  R"(width="{0:.0f}" height="{1:.0f}" )"
                  R"(viewBox="{2:.0f} {2:.0f} {0:.0f} {1:.0f}">)"
                  "\n",
                  width, height, -kBorder);
  if (is_alone) text += fmt::format("<style>{}</style>\n", kStyle);
  for (const auto& [id, colour] :
       {std::pair("arrow", "#8a93a0"), std::pair("arrow-back", "#3f6fd1"),
        std::pair("arrow-transfer", "#d9822b")}) {
    text += fmt::format(
        R"(<marker id="{}" viewBox="0 0 8 8" refX="7" refY="4" )"
        R"(markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" )"
        R"(orient="auto"><path d="M0,0.6L8,4L0,7.4z" fill="{}"/></marker>)"
        "\n",
        id, colour);
  }
  text += "<g id=\"scene\">\n";
  add_frames(drawing, layout, text);
  add_edges(drawing, layout, text);
  add_frame_names(drawing, layout, text);
  add_nodes(drawing, layout, text);
  return text + "</g>\n</svg>\n";
}

}  // namespace tagflow::apps::draw
