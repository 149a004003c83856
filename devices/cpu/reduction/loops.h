// The loops of reductions along dimensions.
//
// An Op defines the computation:
//   In, Acc, Out          element types of the input, the sum, the output
//   Acc initial()         of no elements
//   Acc load(In)          of one element
//   Acc combine(Acc, Acc) of two parts; associative but for rounding
//   Out finish(Acc, int64_t count)
//   kIdentity             whether finish(load(x), 1) is x
//   Partial               optional: an Op that differs in finish() only, so
//                         that both share their code
//
// Rounding: elements are summed in many short chains that are then combined two
// by two, so that the error grows with the logarithm of the number of elements.
// The order depends on the shape alone, never on the workers.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/cpu/reduction/plan.h"

namespace tagflow::devices {

// Computes partial results of a reduction by walking over two-dimensional
// pieces of the input. The elements of one output are divided into numbered
// units; see units().
template <class Op>
class Reducer {
 public:
  using In = typename Op::In;
  using Acc = typename Op::Acc;
  static constexpr int64_t kTile = 256;    // outputs accumulated at a time
  static constexpr int64_t kBlock = 4096;  // elements of a row in one unit

  Reducer(const ReductionPlan& plan, const In* in) : plan_(plan), in_(in) {
    if (plan.ends_reduced) {
      row_ = plan.reduced.back().size;
      blocks_ = (row_ + kBlock - 1) / kBlock;
      units_ = plan.reduced_count / row_ * blocks_;
    } else {
      row_ = plan.kept.empty() ? 1 : plan.kept.back().size;
      units_ = plan.reduced_count;
      leaf_ = std::max<int64_t>(64, kBlock / row_);
    }
  }

  // The units that the elements of one output are divided into: blocks of rows
  // where the innermost run is reduced, single elements otherwise.
  int64_t units() const { return units_; }
  int64_t outputs() const { return plan_.kept_count; }
  // Outputs in one tile; tiles never cross the end of a kept row.
  int64_t tile_width() const {
    return plan_.ends_reduced ? 1 : std::min(row_, kTile);
  }

  // Sets acc[0, width) to the reduction of the units [begin, end) of the
  // outputs from `first` on. REQUIRES: begin < end, and the outputs are in one
  // tile.
  void reduce(int64_t first, int64_t width, int64_t begin, int64_t end,
              Acc* acc) const {
    if (plan_.ends_reduced) {
      const In* base = in_ + ReductionPlan::offset(plan_.kept, first);
      acc[0] = units_ == 1 ? sum_row(base, row_) : sum_units(base, begin, end);
    } else {
      sum_rows(in_ + ReductionPlan::offset(plan_.kept, first), width, begin,
               end, acc);
    }
  }

 private:
  static constexpr int64_t kLanes = 64;
  // These functions are not inlined: each processes many elements, and inlining
  // the recursion made the code of one type several times as long.

  [[gnu::noinline]] static Acc sum_row(const In* in, int64_t count) {
    if (count < kLanes) {
      Acc sum = Op::load(in[0]);
      for (int64_t i = 1; i < count; ++i)
        sum = Op::combine(sum, Op::load(in[i]));
      return sum;
    }
    Acc lanes[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = Op::load(in[j]);
    int64_t i = kLanes;
    for (; i + kLanes <= count; i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j)
        lanes[j] = Op::combine(lanes[j], Op::load(in[i + j]));
    for (int64_t j = 0; i < count; ++i, ++j)
      lanes[j] = Op::combine(lanes[j], Op::load(in[i]));
    for (int64_t half = kLanes / 2; half > 0; half /= 2)
      for (int64_t j = 0; j < half; ++j)
        lanes[j] = Op::combine(lanes[j], lanes[j + half]);
    return lanes[0];
  }

  // Sums units of one output where rows are reduced.
  [[gnu::noinline]] Acc sum_units(const In* base, int64_t begin,
                                  int64_t end) const {
    if (end - begin > 1) {
      const int64_t middle = begin + (end - begin) / 2;
      return Op::combine(sum_units(base, begin, middle),
                         sum_units(base, middle, end));
    }
    const int64_t start = begin % blocks_ * kBlock;
    const int64_t row =
        ReductionPlan::offset(plan_.reduced, begin / blocks_ * row_);
    return sum_row(base + row + start, std::min(kBlock, row_ - start));
  }

  // Sums units of the outputs of one tile where rows are kept.
  [[gnu::noinline]] void sum_rows(const In* base, int64_t width, int64_t begin,
                                  int64_t end, Acc* acc) const {
    if (end - begin > leaf_) {
      const int64_t middle = begin + (end - begin) / 2;
      Acc other[kTile];
      sum_rows(base, width, begin, middle, acc);
      sum_rows(base, width, middle, end, other);
      for (int64_t j = 0; j < width; ++j)
        acc[j] = Op::combine(acc[j], other[j]);
      return;
    }
    for (int64_t j = 0; j < width; ++j) acc[j] = Op::initial();
    const int64_t inner = plan_.reduced.back().size;
    while (begin < end) {
      const int64_t count = std::min(end - begin, inner - begin % inner);
      add_rows(base + ReductionPlan::offset(plan_.reduced, begin), count, width,
               acc);
      begin += count;
    }
  }

  // Adds `count` rows that are row_ apart.
  [[gnu::noinline]] void add_rows(const In* in, int64_t count, int64_t width,
                                  Acc* __restrict acc) const {
    // Contiguous rows are processed as fewer, longer ones.
    const int64_t together = kLanes / row_;
    if (width == row_ && together > 1 && count >= 4 * together) {
      Acc wide[kLanes];
      const int64_t length = together * row_;
      for (int64_t j = 0; j < length; ++j) wide[j] = Op::initial();
      for (; count >= together; count -= together, in += length)
        for (int64_t j = 0; j < length; ++j)
          wide[j] = Op::combine(wide[j], Op::load(in[j]));
      for (int64_t j = 0; j < length; ++j)
        acc[j % row_] = Op::combine(acc[j % row_], wide[j]);
    }
    for (; count >= 4; count -= 4, in += 4 * row_) {
      const In *second = in + row_, *third = second + row_,
               *fourth = third + row_;
      for (int64_t j = 0; j < width; ++j)
        acc[j] = Op::combine(
            acc[j],
            Op::combine(Op::combine(Op::load(in[j]), Op::load(second[j])),
                        Op::combine(Op::load(third[j]), Op::load(fourth[j]))));
    }
    for (; count > 0; --count, in += row_)
      for (int64_t j = 0; j < width; ++j)
        acc[j] = Op::combine(acc[j], Op::load(in[j]));
  }

  const ReductionPlan& plan_;
  const In* in_;
  int64_t row_ = 1;     // length of the innermost run
  int64_t blocks_ = 1;  // units in a reduced row
  int64_t units_ = 1;
  int64_t leaf_ = 1;  // units summed without splitting
};

template <class Op>
struct PartialOf {
  using type = Op;
};
template <class Op>
requires requires { typename Op::Partial; }
struct PartialOf<Op> {
  using type = typename Op::Partial;
};
template <class Op>
using ReducerOf = Reducer<typename PartialOf<Op>::type>;

// Few outputs of many elements each: workers share a fixed number of parts, and
// their partial results are combined.
template <class Op>
void reduce_in_parts(const KernelContext& context, const ReductionPlan& plan,
                     const ReducerOf<Op>& reducer, typename Op::Out* out) {
  using Acc = typename Op::Acc;
  const int64_t parts = std::min<int64_t>(64, reducer.units());
  const int64_t outputs = reducer.outputs();
  std::vector<Acc> partial(size_t(parts * outputs));
  const auto bound = [&](int64_t part) {
    return int64_t(double(reducer.units()) * double(part) / double(parts));
  };
  const double cost =
      double(plan.reduced_count) * double(outputs) / double(parts) * 0.15;
  context.parallel_for(parts, cost, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      for (int64_t i = 0; i < outputs; i += reducer.tile_width())
        reducer.reduce(i, std::min(reducer.tile_width(), outputs - i),
                       bound(part), bound(part + 1),
                       &partial[size_t(part * outputs + i)]);
  });
  for (int64_t count = parts; count > 1; count = (count + 1) / 2)
    for (int64_t part = 0; part < count / 2; ++part)
      for (int64_t i = 0; i < outputs; ++i) {
        Acc& acc = partial[size_t(part * outputs + i)];
        acc = Op::combine(
            acc, partial[size_t((part + (count + 1) / 2) * outputs + i)]);
      }
  for (int64_t i = 0; i < outputs; ++i)
    out[i] = Op::finish(partial[size_t(i)], plan.reduced_count);
}

// Reduces all of `in` into `out`, sharded over the context's workers.
template <class Op>
void reduce(const KernelContext& context, const ReductionPlan& plan,
            const typename Op::In* in, typename Op::Out* out) {
  using Acc = typename Op::Acc;
  if (plan.kept_count == 0) return;
  if (plan.reduced_count == 0) {
    std::fill_n(out, plan.kept_count, Op::finish(Op::initial(), 0));
    return;
  }
  if (plan.reduced.empty()) {
    for (int64_t i = 0; i < plan.kept_count; ++i)
      out[i] = Op::finish(Op::load(in[i]), 1);
    return;
  }
  const ReducerOf<Op> reducer(plan, in);
  // One tile is at most `row` outputs; rows are whole numbers of tiles, the
  // last of which may be shorter.
  const int64_t row =
      plan.ends_reduced || plan.kept.empty() ? 1 : plan.kept.back().size;
  const int64_t width = reducer.tile_width();
  const int64_t tiles_in_row = (row + width - 1) / width;
  const int64_t tiles = plan.kept_count / row * tiles_in_row;
  constexpr int64_t kLarge = 1 << 18;
  if (tiles < 16 && plan.kept_count * plan.reduced_count >= kLarge &&
      reducer.units() >= 64) {
    reduce_in_parts<Op>(context, plan, reducer, out);
    return;
  }
  const double cost = 2 + double(plan.reduced_count * width) * 0.15;
  context.parallel_for(tiles, cost, [&](int64_t begin, int64_t end) {
    Acc acc[ReducerOf<Op>::kTile];
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t column = tile % tiles_in_row * width;
      const int64_t first = tile / tiles_in_row * row + column;
      const int64_t count = std::min(width, row - column);
      reducer.reduce(first, count, 0, reducer.units(), acc);
      for (int64_t j = 0; j < count; ++j)
        out[first + j] = Op::finish(acc[j], plan.reduced_count);
    }
  });
}

}  // namespace tagflow::devices
