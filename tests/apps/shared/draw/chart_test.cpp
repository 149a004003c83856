#include "apps/shared/draw/chart.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

namespace tagflow::apps::draw {
namespace {

using Points = std::vector<std::pair<double, double>>;

// The points of the lines of one style, as they are in the picture.
Points points_of(const std::string& svg, const std::string& style) {
  const std::string begin = "<polyline class=\"" + style + "\" points=\"";
  const size_t found = svg.find(begin);
  if (found == svg.npos) return {};
  std::istringstream text(svg.substr(found + begin.size()));
  Points points;
  char comma = 0;
  for (double x = 0, y = 0; text >> x >> comma >> y;) points.emplace_back(x, y);
  return points;
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST_CASE("a chart's line follows its numbers, within the picture") {
  const Chart chart{.x_label = "step",
                    .y_label = "loss",
                    .series = {{.x = {0, 100}, .y = {0, 10}}}};
  const std::string svg = draw_chart(chart, 400, 300);
  CHECK(count(svg, "width=\"400\" height=\"300\"") > 0);
  CHECK(count(svg, ">step</text>") == 1);
  CHECK(count(svg, ">loss</text>") == 1);
  CHECK(count(svg, ">100</text>") == 1);
  const Points points = points_of(svg, "line");
  REQUIRE(points.size() == 2);
  CHECK(points[1].first > points[0].first + 200);
  CHECK(points[0].second > points[1].second + 150);
  for (const auto& [x, y] : points) {
    CHECK(x >= 0);
    CHECK(x <= 400);
    CHECK(y >= 0);
    CHECK(y <= 300);
  }
}

TEST_CASE("a chart's faint lines do not extend the axis") {
  const auto drawn = [](double faint) {
    const Chart chart{
        .series = {
            {.style = LineStyle::kFaint, .x = {0, 10}, .y = {faint, faint}},
            {.x = {0, 10}, .y = {4, 4}}}};
    return draw_chart(chart, 400, 300);
  };
  const std::string low = drawn(4), high = drawn(1e6);
  CHECK(points_of(low, "line") == points_of(high, "line"));
  CHECK(points_of(low, "faint") == points_of(low, "line"));
  const Points clipped = points_of(high, "faint");
  REQUIRE(clipped.size() == 2);
  CHECK(clipped[0].second > 0);
  CHECK(clipped[0].second <= points_of(high, "line")[0].second);
}

TEST_CASE("a chart's dots are circles on a line, and one in the legend") {
  const Chart chart{.series = {{.name = "test",
                                .style = LineStyle::kDots,
                                .x = {1, 2, 3},
                                .y = {3, 2, 1}}}};
  CHECK(count(draw_chart(chart), "<circle") == 4);
}

TEST_CASE("a chart skips numbers that are not finite") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Chart plain{.series = {{.x = {0, 10}, .y = {1, 2}}}};
  const Chart gaps{
      .series = {{.x = {0, 3, 4, 10}, .y = {1, nan, infinity, 2}}}};
  CHECK(draw_chart(plain) == draw_chart(gaps));
  for (const Chart& chart :
       {Chart{}, Chart{.series = {{.x = {1}, .y = {nan}}}}}) {
    const std::string svg = draw_chart(chart);
    CHECK(count(svg, "<polyline") == 0);
    CHECK(svg.ends_with("</svg>\n"));
  }
  CHECK(count(draw_chart({.series = {{.x = {1}, .y = {0}}}}), "nan") == 0);
}

TEST_CASE("a chart of a million steps is a small file with each peak") {
  Chart chart{.series = {{.style = LineStyle::kFaint}, {}}};
  for (int step = 0; step < 1'000'000; ++step) {
    chart.series[0].x.push_back(step);
    chart.series[0].y.push_back(step == 500'000 ? 9 : 1 + step * 7 % 11 / 10.0);
    chart.series[1].x.push_back(step);
    chart.series[1].y.push_back(10 - step / 1e5);
  }
  const std::string svg = draw_chart(chart);
  CHECK(svg.size() < 200'000);
  const auto height_of = [](const Points& points) {
    double top = 1e9;
    for (const auto& [x, y] : points) top = std::min(top, y);
    return top;
  };
  chart.series[0].y[500'000] = 1;
  CHECK(height_of(points_of(svg, "faint")) <
        height_of(points_of(draw_chart(chart), "faint")) - 100);
  CHECK(points_of(svg, "line").size() > 500);
}

TEST_CASE("texts of a chart are escaped") {
  const Chart chart{.x_label = "a<b",
                    .series = {{.name = "\"&\"", .x = {1}, .y = {1}}}};
  const std::string svg = draw_chart(chart);
  CHECK(count(svg, ">a&lt;b</text>") == 1);
  CHECK(count(svg, ">&quot;&amp;&quot;</text>") == 1);
}

}  // namespace
}  // namespace tagflow::apps::draw
