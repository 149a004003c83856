#include "apps/examples/kmeans/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

namespace tagflow::kmeans {
namespace {

// Of Fashion-MNIST, by label.
constexpr std::array<std::string_view, 10> kLabelNames = {
    "T-shirt/top", "trouser", "pullover", "dress", "coat",
    "sandal",      "shirt",   "sneaker",  "bag",   "ankle boot"};

std::string label_name(size_t label) {
  return label < kLabelNames.size() ? std::string(kLabelNames[label])
                                    : std::to_string(label);
}

}  // namespace

io::Picture draw_centroids(const Tensor& centroids, int side) {
  constexpr int kZoom = 4, kGap = 4, kMaxColumns = 10;
  const int count = int(centroids.dim(0));
  const int columns =
      std::min(kMaxColumns, int(std::ceil(std::sqrt(double(count) * 2))));
  const int rows = (count + columns - 1) / columns;
  const int tile = side * kZoom + kGap;
  io::Picture picture;
  picture.width = columns * tile + kGap;
  picture.height = rows * tile + kGap;
  picture.pixels.assign(size_t(picture.width) * size_t(picture.height), 96);
  const float* values = centroids.data<float>();
  for (int c = 0; c < count; ++c) {
    const int left = c % columns * tile + kGap, top = c / columns * tile + kGap;
    for (int y = 0; y < side * kZoom; ++y) {
      for (int x = 0; x < side * kZoom; ++x) {
        const float value = values[(c * side + y / kZoom) * side + x / kZoom];
        const size_t at =
            size_t(top + y) * size_t(picture.width) + size_t(left + x);
        picture.pixels[at] =
            uint8_t(std::lround(std::clamp(value, 0.0f, 1.0f) * 255));
      }
    }
  }
  return picture;
}

std::string format_report(const Problem& problem, const Solution& solution,
                          const Tensor& labels, const actors::RunStats& stats) {
  std::string text = fmt::format(
      "# k-means\n\n{} points of {} features, {} clusters.\n\n"
      "- trips: {}{}\n- purity: {:.4f}\n- inertia: {:.6g}\n"
      "- seconds: {:.3f}\n- nodes fired: {}\n\n"
      "| cluster | points | most frequent label | its share |\n"
      "|--:|--:|---|--:|\n",
      problem.images.dim(0), problem.images.dim(1), problem.start.dim(0),
      solution.trips, solution.changed == 0 ? "" : " (stopped by the limit)",
      purity(solution, labels), solution.inertia, stats.seconds, stats.fired);
  const auto counts = count_labels(solution, labels);
  for (size_t c = 0; c < counts.size(); ++c) {
    const int64_t total =
        std::accumulate(counts[c].begin(), counts[c].end(), int64_t{0});
    const auto top = std::max_element(counts[c].begin(), counts[c].end());
    text += fmt::format("| {} | {} | {} | {:.3f} |\n", c, total,
                        label_name(size_t(top - counts[c].begin())),
                        total == 0 ? 0.0 : double(*top) / double(total));
  }
  return text;
}

}  // namespace tagflow::kmeans
