// The layout of a drawing, computed by Graphviz.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "apps/shared/draw/drawing.h"

namespace tagflow::apps::draw {

// In pixels; y grows downwards.
struct Point {
  double x = 0, y = 0;
};
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

// In the drawing's order.
struct Layout {
  double width = 0, height = 0;
  std::vector<Box> nodes;
  // Bézier curves, from the tail to the head: a start, then three points per
  // segment. Empty if there is none.
  std::vector<std::vector<Point>> edges;
  std::vector<Box> frames;  // the root's is the whole drawing
};

// The two lines in a node's box. The name is shown without the path that it
// shares with its frame's name.
std::string title_of(const Drawing& drawing, const DrawnNode& node);
std::string subtitle_of(const DrawnNode& node);

// The drawing in Graphviz's DOT language, with frames as clusters.
std::string to_dot(const Drawing& drawing);

// Parses the output of `dot -Tjson` for to_dot(drawing). Returns DataLoss for
// anything else.
Result<Layout> parse_layout(std::string_view json, const Drawing& drawing);

// Limits: larger drawings are unreadable, and dot takes minutes for them.
inline constexpr size_t kMaxDrawnNodes = 2000;
inline constexpr size_t kMaxDrawnEdges = 8000;
// Returns ResourceExhausted beyond these limits.
Status check_size(const Drawing& drawing);

// Runs dot. Returns errors of check_size() and parse_layout(),
// FailedPrecondition if Graphviz is not installed, and DeadlineExceeded
// if it takes too long.
Result<Layout> lay_out(
    const Drawing& drawing,
    std::chrono::milliseconds limit = std::chrono::minutes(2),
    const std::string& program = "dot");

}  // namespace tagflow::apps::draw
