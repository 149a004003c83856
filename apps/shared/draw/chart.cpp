#include "apps/shared/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "apps/shared/draw/font.h"

namespace tagflow::apps::draw {
namespace {

constexpr uint8_t kWhite = 255, kPale = 225, kGrey = 185, kBlack = 0;
// Drawn larger and scaled down at the end, for smooth edges.
constexpr int kFine = 3;
constexpr int kDot = 2;  // of a glyph, in pixels
constexpr int kMargin = 12, kLabelWidth = 56, kLabelHeight = 40;

class Canvas {
 public:
  Canvas(int width, int height)
      : width_(width * kFine), height_(height * kFine) {
    pixels_.assign(size_t(width_) * size_t(height_), kWhite);
  }

  // All coordinates are those of the final picture.
  void fill(double left, double top, double right, double bottom,
            uint8_t shade) {
    const int x0 = at(left), x1 = at(right), y0 = at(top), y1 = at(bottom);
    for (int y = std::max(0, y0); y < std::min(height_, y1); ++y)
      for (int x = std::max(0, x0); x < std::min(width_, x1); ++x)
        pixels_[size_t(y) * size_t(width_) + size_t(x)] = shade;
  }
  void line(double x0, double y0, double x1, double y1, double thickness,
            uint8_t shade) {
    const double longest = std::max(std::abs(x1 - x0), std::abs(y1 - y0));
    const int steps = std::max(1, int(std::ceil(longest * kFine)));
    for (int i = 0; i <= steps; ++i) {
      const double x = std::lerp(x0, x1, double(i) / steps);
      const double y = std::lerp(y0, y1, double(i) / steps);
      fill(x - thickness / 2, y - thickness / 2, x + thickness / 2,
           y + thickness / 2, shade);
    }
  }
  // Text aligned to the left, or to the right.
  void text(double x, double y, std::string_view text, bool to_right = false) {
    constexpr int kAdvance = (kGlyphWidth + 1) * kDot;
    if (to_right) x -= double(text.size()) * kAdvance;
    for (const char c : text) {
      for (int bit = 0; bit < kGlyphWidth * kGlyphHeight; ++bit) {
        const int last = kGlyphWidth * kGlyphHeight - 1;
        if ((glyph(c) >> (last - bit) & 1) == 0) continue;
        const double left = x + bit % kGlyphWidth * kDot;
        const double top = y + bit / kGlyphWidth * kDot;
        fill(left, top, left + kDot, top + kDot, kBlack);
      }
      x += kAdvance;
    }
  }

  io::Picture shrunk() const {
    io::Picture picture{width_ / kFine, height_ / kFine, {}};
    for (int y = 0; y < picture.height; ++y)
      for (int x = 0; x < picture.width; ++x)
        picture.pixels.push_back(mean(x * kFine, y * kFine));
    return picture;
  }

 private:
  static int at(double x) { return int(std::lround(x * kFine)); }
  uint8_t mean(int left, int top) const {
    int sum = 0;
    for (int y = top; y < top + kFine; ++y)
      for (int x = left; x < left + kFine; ++x)
        sum += pixels_[size_t(y) * size_t(width_) + size_t(x)];
    return uint8_t(sum / (kFine * kFine));
  }

  int width_, height_;
  std::vector<uint8_t> pixels_;
};

// What an axis shows: round numbers at equal distances.
struct Axis {
  double low = 0, high = 1, tick = 1;
};

Axis make_axis(double low, double high) {
  if (!(high > low)) high = low + 1;
  constexpr double kTicks = 5;
  const double rough = (high - low) / kTicks;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double tick = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power * (1 + 1e-9)) {
      tick = factor * power;
      break;
    }
  return {std::floor(low / tick) * tick, std::ceil(high / tick - 1e-9) * tick,
          tick};
}

// The range of all series that count for it.
Axis axis_of(const Chart& chart, std::vector<double> Series::*values,
             bool with_faint, double low) {
  double high = -std::numeric_limits<double>::infinity();
  for (const Series& series : chart.series)
    for (const double value : series.*values) {
      if (!std::isfinite(value)) continue;
      low = std::min(low, value);
      if (with_faint || series.style != LineStyle::kFaint)
        high = std::max(high, value);
    }
  return make_axis(low, high);
}

class Plot {
 public:
  Plot(const Chart& chart, int width, int height)
      : chart_(chart),
        canvas_(width, height),
        left_(kMargin + kLabelWidth),
        top_(kMargin + kLabelHeight / 2),
        right_(width - kMargin),
        bottom_(height - kMargin - kLabelHeight),
        x_(axis_of(chart, &Series::x, true, 0)),
        y_(axis_of(chart, &Series::y, false, 0)) {}

  io::Picture draw() {
    draw_axes();
    for (const bool is_faint : {true, false})
      for (const Series& series : chart_.series)
        if ((series.style == LineStyle::kFaint) == is_faint)
          draw_series(series);
    canvas_.text(kMargin, kMargin, chart_.y_label);
    canvas_.text(right_, bottom_ + kLabelHeight - kGlyphHeight * kDot,
                 chart_.x_label, /*to_right=*/true);
    draw_legend();
    return canvas_.shrunk();
  }

 private:
  double x_of(double x) const {
    return left_ + (x - x_.low) / (x_.high - x_.low) * (right_ - left_);
  }
  double y_of(double y) const {
    const double part = (y - y_.low) / (y_.high - y_.low);
    return bottom_ - std::clamp(part, 0.0, 1.0) * (bottom_ - top_);
  }

  void draw_axes() {
    constexpr double kHalfGlyph = kGlyphHeight * kDot / 2.0;
    for (int i = 0; y_.low + i * y_.tick <= y_.high + y_.tick / 2; ++i) {
      const double y = y_.low + i * y_.tick;
      canvas_.line(left_, y_of(y), right_, y_of(y), 1, kPale);
      canvas_.text(left_ - 4, y_of(y) - kHalfGlyph, fmt::format("{:.4g}", y),
                   /*to_right=*/true);
    }
    for (int i = 0; x_.low + i * x_.tick <= x_.high + x_.tick / 2; ++i) {
      const double x = x_.low + i * x_.tick;
      canvas_.line(x_of(x), bottom_, x_of(x), bottom_ + 4, 1, kBlack);
      const std::string text = fmt::format("{:.6g}", x);
      const double width = double(text.size()) * (kGlyphWidth + 1) * kDot;
      canvas_.text(std::min(x_of(x) - width / 2, right_ - width), bottom_ + 8,
                   text);
    }
    canvas_.line(left_, bottom_, right_, bottom_, 1, kBlack);
    canvas_.line(left_, top_, left_, bottom_, 1, kBlack);
  }

  void draw_series(const Series& series) {
    const bool has_dots = series.style == LineStyle::kDots;
    const bool is_faint = series.style == LineStyle::kFaint;
    bool has_last = false;
    double last_x = 0, last_y = 0;
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
      const double x = x_of(series.x[i]), y = y_of(series.y[i]);
      if (has_last)
        canvas_.line(last_x, last_y, x, y, is_faint || has_dots ? 1 : 2,
                     is_faint ? kGrey : kBlack);
      if (has_dots) draw_dot(x, y);
      has_last = true;
      last_x = x;
      last_y = y;
    }
  }
  void draw_dot(double x, double y) {
    constexpr double kRadius = 3;
    canvas_.fill(x - kRadius, y - kRadius, x + kRadius, y + kRadius, kBlack);
    canvas_.fill(x - kRadius + 1, y - kRadius + 1, x + kRadius - 1,
                 y + kRadius - 1, kWhite);
  }

  // In the upper right corner.
  void draw_legend() {
    constexpr double kSample = 24, kLine = 18, kWidth = 110;
    const double x = right_ - kWidth;
    double y = top_ + kLine / 2;
    for (const Series& series : chart_.series) {
      if (series.name.empty() || series.x.empty()) continue;
      const bool has_dots = series.style == LineStyle::kDots;
      canvas_.line(x, y, x + kSample, y, has_dots ? 1 : 2, kBlack);
      if (has_dots) draw_dot(x + kSample / 2, y);
      canvas_.text(x + kSample + 8, y - kGlyphHeight * kDot / 2.0, series.name);
      y += kLine;
    }
  }

  const Chart& chart_;
  Canvas canvas_;
  double left_, top_, right_, bottom_;
  Axis x_, y_;
};

}  // namespace

io::Picture draw_chart(const Chart& chart, int width, int height) {
  return Plot(chart, width, height).draw();
}

}  // namespace tagflow::apps::draw
