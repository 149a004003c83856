// Note [Parts of a product]
// A primitive of the library does its work on the calling thread; we cut the
// work into parts, which workers share: images where there are enough, rows of
// output positions within an image otherwise, for each of which the input is a
// contiguous piece of the whole one. Parts of the same size and the same
// padding share a primitive. A product without a window, or with one of a
// single position, is one row of positions, cut anywhere.
// Each of these parts reads all weights, so there are few parts where the
// weights are many. A step of a recurrent network has few rows. Where its
// weights are few, a part has some of the rows. Where they are many, it has all
// rows and some columns: it computes these next to each other, and copies them
// to their places. A block is a part that goes elsewhere than to its place: it
// has the same columns of each segment, as all gates of some units. How many
// parts there are depends on the shapes only, not on the workers.
#include "devices/cpu/product_parts.h"

#include <algorithm>
#include <bit>

namespace tagflow::devices {
namespace {

// A longer product is worth more than one part.
constexpr double kWorthCutting = 30e3;  // nanoseconds
constexpr int64_t kFewRows = 128;
// So many weights stay in a core's cache.
constexpr int64_t kFewWeights = 160 << 10;
// Of more, so many are read once while what they make stays there.
constexpr int64_t kPartWeights = 384 << 10;

class Cutter {
 public:
  Cutter(const WeightLayout& layout, const Geometry& geometry)
      : layout_(layout), g_(geometry) {}

  double nanoseconds() const {
    // Multiplications per nanosecond.
    const double rate = layout_.inputs == 1 ? 8 : has_few_rows() ? 45 : 60;
    return double(g_.batch) * double(g_.out_positions()) * per_position() /
           rate;
  }

  std::vector<ProductPart> cut(int64_t segments) && {
    const bool is_worth_it = nanoseconds() >= kWorthCutting;
    const int64_t wanted = num_parts();
    if (segments > 0 || (has_few_rows() && is_worth_it))
      cut_matrix(std::max<int64_t>(1, segments),
                 is_worth_it ? std::max<int64_t>(2, wanted) : 1);
    else if (is_matrix_product(layout_, g_))
      cut_positions(wanted);
    else if (g_.batch >= wanted)
      cut_images(wanted);
    else
      cut_rows((wanted + g_.batch - 1) / g_.batch);
    return std::move(parts_);
  }

 private:
  double per_position() const {
    return double(g_.taps()) * double(layout_.inputs) * double(layout_.outputs);
  }

  bool has_few_rows() const {
    return is_matrix_product(layout_, g_) &&
           g_.batch * g_.out_positions() <= kFewRows;
  }

  int64_t num_parts() const {
    constexpr double kLeast = 60e3, kBytesPerNs = 8;
    constexpr int64_t kMost = 16;
    const double reading = per_position() * sizeof(float) / kBytesPerNs;
    const double most = nanoseconds() / std::max(kLeast, 2 * reading);
    const int64_t two = nanoseconds() > 2 * kLeast ? 2 : 1;
    return std::clamp(int64_t(std::min(most, 1e6)), two, kMost);
  }

  // Some rows of all columns where the weights are few, so that each worker has
  // them in its cache; where they are many, all rows of some columns, or as
  // many rows as what these make has place for.
  void cut_matrix(int64_t segments, int64_t wanted) {
    constexpr int64_t kLeastRows = 8;
    constexpr int64_t kUnit = 16;  // columns
    const int64_t rows = g_.batch * g_.out_positions();
    const int64_t width = layout_.outputs / segments;
    const int64_t weights = layout_.inputs * layout_.outputs;
    int64_t row_parts = (rows + kFewRows - 1) / kFewRows;
    int64_t column_parts = 1;
    if (weights <= kFewWeights)
      row_parts =
          std::clamp(wanted, row_parts, std::max(row_parts, rows / kLeastRows));
    else
      // A power of two divides evenly among the usual numbers of workers.
      column_parts = int64_t(std::bit_ceil(
          uint64_t(std::max(std::min<int64_t>(2, wanted),
                            (weights + kPartWeights - 1) / kPartWeights))));
    const int64_t size = (rows + row_parts - 1) / row_parts;
    const int64_t units =
        ((width + column_parts - 1) / column_parts + kUnit - 1) / kUnit;
    for (int64_t row = 0; row < rows; row += size)
      for (int64_t at = 0; at < width; at += units * kUnit) {
        ProductPiece piece;
        piece.width = std::min(size, rows - row);
        piece.segments = segments;
        piece.first_column = at;
        piece.columns = std::min(units * kUnit, width - at);
        add_part(piece, row * g_.channels, row * layout_.outputs,
                 piece.width * layout_.outputs);
        parts_.back().first_row = row;
      }
  }

  void cut_positions(int64_t parts) {
    const int64_t total = g_.batch * g_.out_positions();
    const int64_t size = (total + parts - 1) / parts;
    for (int64_t at = 0; at < total; at += size) {
      const int64_t count = std::min(size, total - at);
      ProductPiece piece;
      piece.width = count;
      add_part(piece, at * g_.channels, at * layout_.outputs,
               count * layout_.outputs);
    }
  }

  void cut_images(int64_t parts) {
    const int64_t size = (g_.batch + parts - 1) / parts;
    const int64_t in = g_.in_positions() * g_.channels;
    const int64_t out = g_.out_positions() * layout_.outputs;
    for (int64_t at = 0; at < g_.batch; at += size) {
      ProductPiece piece = rows(0, g_.out[1]).piece;
      piece.height = g_.in[1];  // with what no window reads
      piece.images = std::min(size, g_.batch - at);
      add_part(piece, at * in, at * out, piece.images * out);
    }
  }

  // Rows of output positions, and where their input begins.
  struct Rows {
    ProductPiece piece;
    int64_t first = 0;
  };

  Rows rows(int64_t begin, int64_t end) const {
    const int64_t extent = (g_.size[1] - 1) * g_.dilation[1] + 1;
    const int64_t first = begin * g_.stride[1] - g_.pad[1];
    const int64_t last = (end - 1) * g_.stride[1] - g_.pad[1] + extent;
    Rows rows;
    rows.first = std::clamp<int64_t>(first, 0, g_.in[1]);
    rows.piece.height = std::clamp<int64_t>(last, 0, g_.in[1]) - rows.first;
    rows.piece.width = g_.in[2];
    rows.piece.out_height = end - begin;
    rows.piece.pad_top = rows.first - first;
    rows.piece.pad_bottom = last - rows.first - rows.piece.height;
    return rows;
  }

  void cut_rows(int64_t parts) {
    const int64_t size = (g_.out[1] + parts - 1) / parts;
    const int64_t row = g_.in[2] * g_.channels;
    const int64_t out_row = g_.out[2] * layout_.outputs;
    for (int64_t image = 0; image < g_.batch; ++image)
      for (int64_t at = 0; at < g_.out[1]; at += size) {
        const int64_t end = std::min(at + size, g_.out[1]);
        const auto [piece, first] = rows(at, end);
        add_part(piece, (image * g_.in[1] + first) * row,
                 (image * g_.out[1] + at) * out_row, (end - at) * out_row);
      }
  }

  void add_part(ProductPiece piece, int64_t in, int64_t begin, int64_t count) {
    if (piece.columns == 0) piece.columns = layout_.outputs;
    parts_.push_back({piece, in, begin, begin + count});
  }

  const WeightLayout& layout_;
  const Geometry& g_;
  std::vector<ProductPart> parts_;
};

}  // namespace

bool is_matrix_product(const WeightLayout& layout, const Geometry& g) {
  return g.taps() == 1 && g.in == g.out && layout.groups == 1 &&
         g.stride == Spatial{1, 1, 1} && g.pad == Spatial{0, 0, 0};
}

double product_cost(const WeightLayout& layout, const Geometry& geometry) {
  return Cutter(layout, geometry).nanoseconds();
}

std::vector<ProductPart> cut_product(const WeightLayout& layout,
                                     const Geometry& geometry,
                                     int64_t segments) {
  return Cutter(layout, geometry).cut(segments);
}

}  // namespace tagflow::devices
