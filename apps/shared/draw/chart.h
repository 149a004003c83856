// Draws charts: lines and dots between two axes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tagflow::apps::draw {

enum class LineStyle : uint8_t {
  kLine,   // black
  kFaint,  // grey, behind the others; clipped at the top
  kDots,   // black, joined by a thin line
};

// Points from left to right. A series without a name is not in the legend.
// Points that are not finite are skipped.
struct Series {
  std::string name = {};
  LineStyle style = LineStyle::kLine;
  std::vector<double> x = {}, y = {};  // equally many
};

// The y axis begins at 0, or below 0 for negative numbers, and is long enough
// for all series that are not faint.
struct Chart {
  std::string x_label = {}, y_label = {};
  std::vector<Series> series = {};
};

// The chart as a file of SVG, with the given size in pixels. REQUIRES: width >=
// 200, height >= 100.
std::string draw_chart(const Chart& chart, int width = 800, int height = 480);

}  // namespace tagflow::apps::draw
