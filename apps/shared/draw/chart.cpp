#include "apps/shared/draw/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "apps/shared/draw/svg.h"

namespace tagflow::apps::draw {
namespace {

constexpr double kMargin = 12, kLabelWidth = 56, kLabelHeight = 40;

constexpr std::string_view kStyle = R"(
text { font: 12px Helvetica, Arial, "Liberation Sans", sans-serif; }
.right { text-anchor: end; }
.middle { text-anchor: middle; }
polyline, line, circle { fill: none; stroke: #000; }
.line { stroke-width: 2; }
.faint { stroke: #b9b9b9; }
.grid { stroke: #e1e1e1; }
rect, circle { fill: #fff; }
)";

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
        right_(width - kMargin),
        bottom_(height - kMargin - kLabelHeight),
        x_(axis_of(chart, &Series::x, true, 0)),
        y_(axis_of(chart, &Series::y, false, 0)) {
    add(R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" )"
        R"(viewBox="0 0 {0} {1}">)"
        "\n<style>{2}</style>\n"
        R"(<rect width="{0}" height="{1}"/>)"
        "\n",
        width, height, kStyle);
  }

  std::string draw() {
    draw_axes();
    for (const bool is_faint : {true, false})
      for (const Series& series : chart_.series)
        if ((series.style == LineStyle::kFaint) == is_faint)
          draw_series(series);
    add_text("left", kMargin, kMargin, chart_.y_label);
    add_text("right", right_, bottom_ + kLabelHeight, chart_.x_label);
    draw_legend();
    return text_ + "</svg>\n";
  }

 private:
  static constexpr double kLeft = kMargin + kLabelWidth;
  static constexpr double kTop = kMargin + kLabelHeight / 2;
  static constexpr double kHalfLetter = 4;

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format,
                   std::forward<Args>(args)...);
  }
  void add_line(std::string_view style, double x0, double y0, double x1,
                double y1) {
    add(R"(<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)"
        "\n",
        style, x0, y0, x1, y1);
  }
  void add_text(std::string_view style, double x, double y,
                std::string_view text) {
    add(R"(<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>)"
        "\n",
        style, x, y, escape_markup(text));
  }
  void add_dot(double x, double y) {
    add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3"/>)"
        "\n",
        x, y);
  }

  double x_of(double x) const {
    return kLeft + (x - x_.low) / (x_.high - x_.low) * (right_ - kLeft);
  }
  double y_of(double y) const {
    const double part = (y - y_.low) / (y_.high - y_.low);
    return bottom_ - std::clamp(part, 0.0, 1.0) * (bottom_ - kTop);
  }

  void draw_axes() {
    for (int i = 0; y_.low + i * y_.tick <= y_.high + y_.tick / 2; ++i) {
      const double y = y_.low + i * y_.tick;
      add_line("grid", kLeft, y_of(y), right_, y_of(y));
      add_text("right", kLeft - 4, y_of(y) + kHalfLetter,
               fmt::format("{:.4g}", y));
    }
    for (int i = 0; x_.low + i * x_.tick <= x_.high + x_.tick / 2; ++i) {
      const double x = x_.low + i * x_.tick;
      add_line("axis", x_of(x), bottom_, x_of(x), bottom_ + 4);
      const bool is_last = x + x_.tick > x_.high + x_.tick / 2;
      add_text(is_last ? "right" : "middle", x_of(x), bottom_ + 18,
               fmt::format("{:.6g}", x));
    }
    add_line("axis", kLeft, bottom_, right_, bottom_);
    add_line("axis", kLeft, kTop, kLeft, bottom_);
  }

  // There may be a million steps: leaves out points that nobody would see
  // beside those of the same column of pixels.
  void draw_series(const Series& series) {
    std::vector<std::pair<double, double>> seen;
    double low = 0, high = 0;  // of the column
    double column = -std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
      const double x = x_of(series.x[i]), y = y_of(series.y[i]);
      if (x >= column + 1) {
        column = x;
        low = high = y;
      } else if (y > low - 0.5 && y < high + 0.5) {
        continue;
      }
      low = std::min(low, y);
      high = std::max(high, y);
      seen.emplace_back(x, y);
    }
    if (seen.empty()) return;
    add(R"(<polyline class="{}" points=")", style_of(series));
    for (const auto& [x, y] : seen) add("{:.1f},{:.1f} ", x, y);
    text_ += "\"/>\n";
    if (series.style == LineStyle::kDots)
      for (const auto& [x, y] : seen) add_dot(x, y);
  }
  static std::string_view style_of(const Series& series) {
    return series.style == LineStyle::kFaint  ? "faint"
           : series.style == LineStyle::kDots ? "dots"
                                              : "line";
  }

  // In the upper right corner.
  void draw_legend() {
    constexpr double kSample = 24, kLine = 18, kWidth = 110;
    const double x = right_ - kWidth;
    double y = kTop + kLine / 2;
    for (const Series& series : chart_.series) {
      if (series.name.empty() || series.x.empty()) continue;
      add_line(style_of(series), x, y, x + kSample, y);
      if (series.style == LineStyle::kDots) add_dot(x + kSample / 2, y);
      add_text("left", x + kSample + 8, y + kHalfLetter, series.name);
      y += kLine;
    }
  }

  const Chart& chart_;
  std::string text_;
  double right_, bottom_;
  Axis x_, y_;
};

}  // namespace

std::string draw_chart(const Chart& chart, int width, int height) {
  return Plot(chart, width, height).draw();
}

}  // namespace tagflow::apps::draw
