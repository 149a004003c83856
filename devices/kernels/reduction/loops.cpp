#include "devices/kernels/reduction/loops.h"

#include <vector>

namespace tagflow::devices {

namespace {

constexpr int64_t kTile = 256;         // outputs accumulated at a time
constexpr int64_t kBlock = 4096;       // elements of a row in one unit
constexpr double kElementCost = 0.15;  // nanoseconds

// Computes partial results of a reduction by walking over two-dimensional
// pieces of the input. The elements of one output are divided into numbered
// units; see units().
class Reducer {
 public:
  Reducer(const ReductionPlan& plan, const ReductionLoops& loops,
          const void* in)
      : plan_(plan), loops_(loops), in_(static_cast<const std::byte*>(in)) {
    if (plan.ends_reduced) {
      row_ = plan.reduced.back().size;
      blocks_ = (row_ + kBlock - 1) / kBlock;
      units_ = plan.reduced_count / row_ * blocks_;
      if (units_ == 1 && !plan.kept.empty()) {
        outputs_in_row_ = plan.kept.back().size;
        tile_width_ = std::clamp<int64_t>(kBlock / row_, 1, kTile);
      }
    } else {
      row_ = plan.kept.empty() ? 1 : plan.kept.back().size;
      units_ = plan.reduced_count;
      leaf_ = std::max<int64_t>(64, kBlock / row_);
      outputs_in_row_ = row_;
      tile_width_ = kTile;
    }
    tile_width_ = std::min(tile_width_, outputs_in_row_);
  }

  // The units that the elements of one output are divided into: blocks of rows
  // if the innermost run is reduced, single elements otherwise.
  int64_t units() const { return units_; }
  // The outputs of a tile, but of the last one in a kept row, since tiles never
  // cross the end of a row.
  int64_t tile_width() const { return tile_width_; }
  int64_t tiles() const {
    return plan_.kept_count / outputs_in_row_ * tiles_in_row();
  }
  struct Tile {
    int64_t first, width;  // of outputs
  };
  Tile tile(int64_t index) const {
    const int64_t column = index % tiles_in_row() * tile_width_;
    return {index / tiles_in_row() * outputs_in_row_ + column,
            std::min(tile_width_, outputs_in_row_ - column)};
  }

  // Sets acc[0, tile.width) to the sums of the tile's outputs over the units
  // [begin, end). REQUIRES: begin < end
  void sum(Tile tile, int64_t begin, int64_t end, void* acc) const {
    const std::byte* base = first_element(tile);
    if (plan_.ends_reduced) {
      sum_units(base, begin, end, acc);
    } else {
      sum_rows(base, tile.width, begin, end, acc);
    }
  }

  // Sets a tile's outputs.
  void finish(Tile tile, std::byte* out) const {
    out += size_t(tile.first) * loops_.out_size;
    if (plan_.ends_reduced && units_ == 1) {
      const int64_t stride = plan_.kept.empty() ? row_ : plan_.kept.back().step;
      loops_.finish_rows(first_element(tile), row_, stride, tile.width, out);
      return;
    }
    alignas(ReductionLoops::kMaxAccSize)
        std::byte acc[kTile * ReductionLoops::kMaxAccSize];
    sum(tile, 0, units_, acc);
    loops_.finish(acc, tile.width, plan_.reduced_count, out);
  }

 private:
  int64_t tiles_in_row() const {
    return (outputs_in_row_ + tile_width_ - 1) / tile_width_;
  }
  const std::byte* element(const std::byte* base, int64_t offset) const {
    return base + offset * int64_t(loops_.in_size);
  }
  const std::byte* first_element(Tile tile) const {
    return element(in_, ReductionPlan::offset(plan_.kept, tile.first));
  }

  // Sums units of one output if rows are reduced.
  void sum_units(const std::byte* base, int64_t begin, int64_t end,
                 void* acc) const {
    if (end - begin > 1) {
      const int64_t middle = begin + (end - begin) / 2;
      alignas(ReductionLoops::kMaxAccSize)
          std::byte other[ReductionLoops::kMaxAccSize];
      sum_units(base, begin, middle, acc);
      sum_units(base, middle, end, other);
      loops_.combine(acc, other, 1);
      return;
    }
    const int64_t start = begin % blocks_ * kBlock;
    const int64_t row =
        ReductionPlan::offset(plan_.reduced, begin / blocks_ * row_);
    loops_.sum_row(element(base, row + start), std::min(kBlock, row_ - start),
                   acc);
  }

  // Sums units of the outputs of one tile if rows are kept.
  void sum_rows(const std::byte* base, int64_t width, int64_t begin,
                int64_t end, void* acc) const {
    if (end - begin > leaf_) {
      const int64_t middle = begin + (end - begin) / 2;
      alignas(ReductionLoops::kMaxAccSize)
          std::byte other[kTile * ReductionLoops::kMaxAccSize];
      sum_rows(base, width, begin, middle, acc);
      sum_rows(base, width, middle, end, other);
      loops_.combine(acc, other, width);
      return;
    }
    loops_.start(width, acc);
    const int64_t inner = plan_.reduced.back().size;
    while (begin < end) {
      const int64_t count = std::min(end - begin, inner - begin % inner);
      loops_.add_rows(
          element(base, ReductionPlan::offset(plan_.reduced, begin)), count,
          row_, width, acc);
      begin += count;
    }
  }

  const ReductionPlan& plan_;
  const ReductionLoops& loops_;
  const std::byte* in_;
  int64_t row_ = 1;             // length of the innermost run
  int64_t blocks_ = 1;          // units in a reduced row
  int64_t units_ = 1;           // of one output
  int64_t leaf_ = 1;            // units summed without splitting
  int64_t outputs_in_row_ = 1;  // that are neighbours in tiles
  int64_t tile_width_ = 1;
};

// Few outputs of many elements each: workers share a fixed number of parts, and
// their partial results are combined.
void reduce_in_parts(const KernelContext& context, const ReductionPlan& plan,
                     const ReductionLoops& loops, const Reducer& reducer,
                     std::byte* out) {
  const int64_t parts = std::min<int64_t>(64, reducer.units());
  const int64_t outputs = plan.kept_count;
  const size_t part_size = size_t(outputs) * loops.acc_size;
  std::vector<std::byte> partial(size_t(parts) * part_size);
  const auto sums = [&](int64_t part, int64_t output) {
    return partial.data() + size_t(part) * part_size +
           size_t(output) * loops.acc_size;
  };
  const auto bound = [&](int64_t part) {
    return int64_t(double(reducer.units()) * double(part) / double(parts));
  };
  const double cost = double(plan.reduced_count) * double(outputs) /
                      double(parts) * kElementCost;
  context.parallel_for(parts, cost, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      for (int64_t i = 0; i < reducer.tiles(); ++i) {
        const Reducer::Tile tile = reducer.tile(i);
        reducer.sum(tile, bound(part), bound(part + 1), sums(part, tile.first));
      }
  });
  for (int64_t count = parts; count > 1; count = (count + 1) / 2)
    for (int64_t part = 0; part < count / 2; ++part)
      loops.combine(sums(part, 0), sums(part + (count + 1) / 2, 0), outputs);
  loops.finish(partial.data(), outputs, plan.reduced_count, out);
}

// Sets `count` outputs to what reductions of no elements give.
void fill_with_nothing(const ReductionLoops& loops, int64_t count,
                       std::byte* out) {
  alignas(ReductionLoops::kMaxAccSize)
      std::byte sums[kTile * ReductionLoops::kMaxAccSize];
  loops.start(std::min(count, kTile), sums);
  for (int64_t i = 0; i < count; i += kTile)
    loops.finish(sums, std::min(kTile, count - i), 0,
                 out + size_t(i) * loops.out_size);
}

}  // namespace

void reduce(const KernelContext& context, const ReductionPlan& plan,
            const ReductionLoops& loops, const void* in, void* out) {
  if (plan.kept_count == 0) return;
  auto* to = static_cast<std::byte*>(out);
  if (plan.reduced_count == 0) {
    fill_with_nothing(loops, plan.kept_count, to);
    return;
  }
  if (plan.reduced.empty()) {
    loops.finish_rows(in, 1, 1, plan.kept_count, to);
    return;
  }
  const Reducer reducer(plan, loops, in);
  constexpr int64_t kLarge = 1 << 18;
  if (reducer.tiles() < 16 && plan.kept_count * plan.reduced_count >= kLarge &&
      reducer.units() >= 64) {
    reduce_in_parts(context, plan, loops, reducer, to);
    return;
  }
  const double cost =
      2 + double(plan.reduced_count * reducer.tile_width()) * kElementCost;
  context.parallel_for(reducer.tiles(), cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) reducer.finish(reducer.tile(i), to);
  });
}

}  // namespace tagflow::devices
