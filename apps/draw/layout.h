// Where a drawing's parts lie, as Graphviz puts them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "apps/draw/drawing.h"

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
  // Bézier curves, from the tail to the head: a start, then three points a
  // piece. Empty where there is none.
  std::vector<std::vector<Point>> edges;
  std::vector<Box> frames;  // the root's is all
};

// The two lines in a node's box. The name is shown without the path that it
// shares with its frame's.
std::string title_of(const Drawing& drawing, const DrawnNode& node);
std::string subtitle_of(const DrawnNode& node);

// The drawing in Graphviz's DOT language, frames as clusters; complete for
// any of its tools.
std::string to_dot(const Drawing& drawing);

// Reads what `dot -Tjson` says of to_dot(drawing). DataLoss where that is
// something else.
Result<Layout> parse_layout(std::string_view json, const Drawing& drawing);

// Larger drawings are no use to anybody, and take dot minutes.
inline constexpr size_t kMaxDrawnNodes = 2000;
inline constexpr size_t kMaxDrawnEdges = 8000;
// ResourceExhausted beyond them.
Status check_size(const Drawing& drawing);

// Asks dot. Errors: check_size(), parse_layout(), FailedPrecondition where
// Graphviz is not installed, DeadlineExceeded where it takes too long.
Result<Layout> lay_out(
    const Drawing& drawing,
    std::chrono::milliseconds limit = std::chrono::minutes(2),
    const std::string& program = "dot");

}  // namespace tagflow::apps::draw
