// Numbers over numbers, as a picture: lines and dots between two axes.
#pragma once

#include <string>
#include <vector>

#include "apps/io/png.h"

namespace tagflow::apps::draw {

enum class LineStyle : uint8_t {
  kLine,   // black
  kFaint,  // grey, and behind the others; is cut off at the top
  kDots,   // black, joined by a thin line
};

// Points from left to right. Without a name it is not in the legend. Points
// that are not finite are left out.
struct Series {
  std::string name = {};
  LineStyle style = LineStyle::kLine;
  std::vector<double> x = {}, y = {};  // equally many
};

// The y axis begins at 0, or below where there are negative numbers, and ends
// where all series but faint ones fit. Texts are of letters, digits and the
// signs .,-+%/()=_ ; others are blank.
struct Chart {
  std::string x_label = {}, y_label = {};
  std::vector<Series> series = {};
};

// The picture, of so many pixels. REQUIRES: width >= 200, height >= 100.
io::Picture draw_chart(const Chart& chart, int width = 800, int height = 480);

}  // namespace tagflow::apps::draw
