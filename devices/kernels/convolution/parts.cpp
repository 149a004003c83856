// Note [Parts of a convolution]
// A primitive of the library runs on the calling thread; we divide the work
// into parts, which workers share. A part is some images if there are enough,
// otherwise some rows of output positions within an image, whose input is a
// contiguous piece of the whole. Parts of the same size and the same padding
// share a primitive. The number of parts depends on the shapes only, not on the
// workers.
#include "devices/kernels/convolution/parts.h"

#include <algorithm>

#include "devices/kernels/part_count.h"

namespace tagflow::devices {
namespace {

class Cutter {
 public:
  Cutter(const WeightLayout& layout, const Geometry& geometry)
      : layout_(layout), g_(geometry) {}

  double nanoseconds() const {
    // Multiplications per nanosecond.
    const double rate = layout_.inputs == 1 ? 8 : 60;
    return double(g_.batch) * double(g_.out_positions()) * per_position() /
           rate;
  }

  std::vector<ConvolutionPart> cut() && {
    const int64_t wanted = num_parts();
    if (g_.batch >= wanted)
      cut_images(wanted);
    else
      cut_rows((wanted + g_.batch - 1) / g_.batch);
    return std::move(parts_);
  }

 private:
  double per_position() const {
    return double(g_.taps()) * double(layout_.inputs) * double(layout_.outputs);
  }

  // Each part reads all weights, so there are few parts if these are many.
  int64_t num_parts() const {
    return parts_worth_sharing(nanoseconds(),
                               2 * per_position() * sizeof(float));
  }

  void cut_images(int64_t parts) {
    const int64_t size = (g_.batch + parts - 1) / parts;
    const int64_t in = g_.in_positions() * g_.channels;
    const int64_t out = g_.out_positions() * layout_.outputs;
    for (int64_t at = 0; at < g_.batch; at += size) {
      ConvolutionPiece piece = rows(0, g_.out[1]).piece;
      piece.height = g_.in[1];  // includes rows that no window reads
      piece.images = std::min(size, g_.batch - at);
      add_part(piece, at * in, at * out, piece.images * out);
    }
  }

  // Rows of output positions, and the start of their input.
  struct Rows {
    ConvolutionPiece piece;
    int64_t first = 0;
  };

  Rows rows(int64_t begin, int64_t end) const {
    const int64_t extent = (g_.size[1] - 1) * g_.dilation[1] + 1;
    const int64_t first = begin * g_.stride[1] - g_.pad[1];
    const int64_t last = (end - 1) * g_.stride[1] - g_.pad[1] + extent;
    Rows rows;
    rows.first = std::clamp<int64_t>(first, 0, g_.in[1]);
    rows.piece.height = std::clamp<int64_t>(last, 0, g_.in[1]) - rows.first;
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

  void add_part(const ConvolutionPiece& piece, int64_t in, int64_t begin,
                int64_t count) {
    parts_.push_back({piece, in, begin, begin + count});
  }

  const WeightLayout& layout_;
  const Geometry& g_;
  std::vector<ConvolutionPart> parts_;
};

}  // namespace

double convolution_cost(const WeightLayout& layout, const Geometry& geometry) {
  return Cutter(layout, geometry).nanoseconds();
}

std::vector<ConvolutionPart> cut_convolution(const WeightLayout& layout,
                                             const Geometry& geometry) {
  return Cutter(layout, geometry).cut();
}

}  // namespace tagflow::devices
