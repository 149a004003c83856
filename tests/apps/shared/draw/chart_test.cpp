#include "apps/shared/draw/chart.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/shared/draw/font.h"

namespace tagflow::apps::draw {
namespace {

// The darkest pixel of a column, between rows, and where it is.
std::pair<int, int> darkest(const io::Picture& picture, int x, int top,
                            int bottom) {
  std::pair<int, int> best{256, -1};
  for (int y = top; y < bottom; ++y) {
    const int shade = picture.pixels[size_t(y * picture.width + x)];
    best = std::min(best, {shade, y});
  }
  return best;
}

TEST_CASE("a line is black, and goes up where its numbers do") {
  const Chart chart{.x_label = "step",
                    .y_label = "loss",
                    .series = {{.x = {0, 100}, .y = {0, 10}}}};
  const io::Picture picture = draw_chart(chart, 400, 300);
  REQUIRE(picture.width == 400);
  REQUIRE(picture.height == 300);
  REQUIRE(picture.pixels.size() == 400 * 300);
  const auto [left_shade, left] = darkest(picture, 120, 40, 240);
  const auto [right_shade, right] = darkest(picture, 360, 40, 240);
  CHECK(left_shade < 60);
  CHECK(right_shade < 60);
  CHECK(left > right + 100);
}

TEST_CASE("faint lines do not make the axis longer, and stay in the picture") {
  const auto middle_of = [](std::vector<double> faint) {
    const Chart chart{
        .series = {{.style = LineStyle::kFaint, .x = {0, 10}, .y = faint},
                   {.x = {0, 10}, .y = {4, 4}}}};
    return darkest(draw_chart(chart, 400, 300), 200, 20, 240);
  };
  CHECK(middle_of({4, 4}) == middle_of({1e6, 1e6}));
}

TEST_CASE("numbers that are not finite leave a gap, and no series no picture") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Chart plain{.series = {{.x = {0, 10}, .y = {1, 2}}}};
  const Chart gaps{
      .series = {{.x = {0, 3, 4, 10}, .y = {1, nan, infinity, 2}}}};
  CHECK(draw_chart(plain).pixels == draw_chart(gaps).pixels);
  for (const Chart& chart : {Chart{}, Chart{.series = {{.x = {1}, .y = {nan}}}},
                             Chart{.series = {{.x = {1}, .y = {0}}}}})
    CHECK(draw_chart(chart).width == 800);
}

TEST_CASE("letters, digits and signs have forms of their own") {
  const std::string_view all = "0123456789abcdefghijklmnopqrstuvwxyz.,-+%/()=_";
  std::vector<uint16_t> glyphs;
  for (const char c : all) glyphs.push_back(glyph(c));
  std::sort(glyphs.begin(), glyphs.end());
  CHECK(glyphs.front() > 0);
  CHECK(glyphs.back() < 1 << (kGlyphWidth * kGlyphHeight));
  CHECK(std::adjacent_find(glyphs.begin(), glyphs.end()) == glyphs.end());
  CHECK(glyph('A') == glyph('a'));
  CHECK(glyph(' ') == 0);
  CHECK(glyph('\xff') == 0);
}

}  // namespace
}  // namespace tagflow::apps::draw
