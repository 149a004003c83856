#include "apps/examples/train_jpegs/shapes.h"

#include <algorithm>
#include <cmath>

namespace tagflow::train_jpegs {
namespace {

// From low up to high. Unlike the distributions of the library, it is the same
// everywhere.
double draw(std::mt19937_64& random, double low, double high) {
  constexpr double kSteps = double(uint64_t{1} << 53);
  return low + (high - low) * double(random() >> 11U) / kSteps;
}

// Whether a point is part of a shape, which lies within 1 around 0.
bool is_inside(size_t kind, double x, double y) {
  const double around = std::hypot(x, y);
  const double far = std::max(std::abs(x), std::abs(y));
  const double near = std::min(std::abs(x), std::abs(y));
  switch (kind) {
    case 0:  // disc
      return around <= 0.95;
    case 1:  // ring
      return around <= 0.95 && around > 0.55;
    case 2:  // square
      return far <= 0.8;
    case 3:  // frame
      return far <= 0.8 && far > 0.45;
    case 4:  // triangle
      return y >= -0.5 && y <= 1 - std::sqrt(3.0) * std::abs(x);
    default:  // cross
      return far <= 0.95 && near <= 0.28;
  }
}

using Color = std::array<double, 3>;

Color draw_color(std::mt19937_64& random) {
  return {draw(random, 0, 255), draw(random, 0, 255), draw(random, 0, 255)};
}

// How bright it looks.
double brightness(const Color& color) {
  return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2];
}

}  // namespace

Drawing draw_shape(size_t kind, std::mt19937_64& random) {
  constexpr double kPi = 3.14159265358979;
  constexpr double kContrast = 60, kNoise = 25;
  const auto width = int64_t(draw(random, 48, 81));
  const auto height = int64_t(draw(random, 48, 81));
  const double room = double(std::min(width, height)) / 2;
  const double radius = draw(random, 0.55, 0.95) * room;
  const double left = draw(random, radius, double(width) - radius);
  const double top = draw(random, radius, double(height) - radius);
  const double turn = draw(random, 0, 2 * kPi);
  const double cosine = std::cos(turn), sine = std::sin(turn);
  const Color ground = draw_color(random);
  Color ink = draw_color(random);
  while (std::abs(brightness(ink) - brightness(ground)) < kContrast)
    ink = draw_color(random);

  Drawing drawing{{.height = height, .width = width, .channels = 3}, {}};
  drawing.pixels.reserve(size_t(drawing.shape.elements()));
  for (int64_t row = 0; row < height; ++row) {
    for (int64_t column = 0; column < width; ++column) {
      const double x = (double(column) + 0.5 - left) / radius;
      const double y = (double(row) + 0.5 - top) / radius;
      const bool is_ink =
          is_inside(kind, cosine * x - sine * y, sine * x + cosine * y);
      for (size_t i = 0; i < 3; ++i) {
        const double value =
            (is_ink ? ink : ground)[i] + draw(random, -kNoise, kNoise);
        drawing.pixels.push_back(uint8_t(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  return drawing;
}

}  // namespace tagflow::train_jpegs
