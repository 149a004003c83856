// The Mandelbrot set: all pixels at once, until none is near any more or 200
// trips are made. Writes mandelbrot.png, or the file that is named.
//
//   c = x + iy of every pixel
//               +----------------------------------------+
//               v                                        |
//   z = 0 --> any |z| <= 2 ? --yes--> where |z| <= 2:    |
//   trips = 0   |                     z = z^2 + c, trips += 1
//               |
//               no--> trips of every pixel --> a picture
//
// The state of the loop is a complex tensor. Pixels that left keep their z, so
// that nothing overflows.
#include <cmath>
#include <complex>

#include "apps/examples/run.h"
#include "apps/shared/io/png.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kWidth = 360, kHeight = 240, kTrips = 200;

struct State {
  Output z, trips;
  TAGFLOW_FIELDS(z, trips)
};

Output is_near(const Scope& s, const Output& z) {
  return less_equal(s, s.op("ComplexAbs", {z}), 2);
}

Output mandelbrot(const Scope& s) {
  const Output xs = s.op("LinSpace", {-2.f, 1.f, kWidth});
  const Output ys = s.op("LinSpace", {1.f, -1.f, kHeight});
  const Output c = s.op(
      "Complex", {reshape(s, xs, {1, kWidth}), reshape(s, ys, {kHeight, 1})});
  const Output none = fill(s, {kHeight, kWidth}, 0);
  const State last = while_loop(
      s,
      [](const Scope& in, const State& v) {
        return reduce_any(in, is_near(in, v.z));
      },
      [&](const Scope& in, const State& v) {
        const Output near = is_near(in, v.z);
        const Output next = add(in, square(in, v.z), c);
        return State{select(in, near, next, v.z),
                     add(in, v.trips, cast(in, near, DataType::kInt32))};
      },
      State{zeros_like(s, c), none}, {.maximum_iterations = kTrips});
  return last.trips;
}

// The number of trips of one pixel, in C++.
int trips_of(std::complex<float> c) {
  std::complex<float> z = 0;
  int trips = 0;
  for (; trips < kTrips && std::abs(z) <= 2; ++trips) z = z * z + c;
  return trips;
}

}  // namespace

int main(int argc, char** argv) {
  Graph graph;
  const Scope s(graph);
  const Output trips = mandelbrot(s);
  const auto result = examples::run(s, {}, {trips})[0];
  const auto counts = result.flat<int>();

  io::Picture picture{kWidth, kHeight, {}};
  int differ = 0;
  for (int i = 0; i < kWidth * kHeight; ++i) {
    const float x = -2 + 3 * float(i % kWidth) / (kWidth - 1);
    const float y = 1 - 2 * float(i / kWidth) / (kHeight - 1);
    const int count = counts[size_t(i)];
    differ += std::abs(count - trips_of({x, y})) > 1 ? 1 : 0;
    const double shade = std::log1p(count) / std::log1p(kTrips);
    picture.pixels.push_back(count == kTrips ? 0 : uint8_t(255 * shade));
  }
  const char* path = argc > 1 ? argv[1] : "mandelbrot.png";
  if (const auto status = io::write_png(path, picture); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.to_string().c_str());
    return 1;
  }
  std::printf("%s: %d pixels, of which %d differ from C++\n", path,
              kWidth * kHeight, differ);
  // On the border of the set, the last bit of a product decides.
  return differ < kWidth * kHeight / 200 ? 0 : 1;
}
