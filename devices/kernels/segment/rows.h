// Reduction of runs of rows, shared by sorted and sparse segment ops. Only the
// loops are compiled for each type, not the kernels.
#pragma once

#include <algorithm>

#include "devices/kernels/segment/ids.h"

namespace tagflow::devices {

// Rows of a matrix and the segment of each. `ids` are sorted.
struct SegmentedRows {
  const void* data;
  int64_t size;            // elements of a row
  const int64_t* indices;  // number of the row in data; null: its position
  const int64_t* ids;
  int64_t count;
};

// Row s of `out`, for s < segments, becomes the reduction of the rows of
// segment s, or `empty` if there are none.
using ReduceSegmentsFn = void (*)(const KernelContext& context,
                                  const SegmentedRows& rows, int64_t segments,
                                  int empty, void* out);

// Op: see reduction/loops.h.
template <class Op>
void reduce_segments(const KernelContext& context, const SegmentedRows& rows,
                     int64_t segments, int empty, void* out) {
  using Acc = typename Op::Acc;
  using Out = typename Op::Out;
  constexpr int64_t kTile = 256;
  if (segments == 0 || rows.size == 0) return;
  const double cost =
      5 + double(rows.size) * 0.5 * (1 + double(rows.count) / double(segments));
  context.parallel_for(segments, cost, [&](int64_t begin, int64_t end) {
    const int64_t* stop = rows.ids + rows.count;
    const int64_t* from = std::lower_bound(rows.ids, stop, begin);
    Acc acc[kTile];
    for (int64_t segment = begin; segment < end; ++segment) {
      const int64_t* next = from;
      while (next != stop && *next == segment) ++next;
      Out* to = static_cast<Out*>(out) + segment * rows.size;
      if (next == from) {
        std::fill_n(to, rows.size, static_cast<Out>(empty));
        continue;
      }
      for (int64_t column = 0; column < rows.size; column += kTile) {
        const int64_t width = std::min(kTile, rows.size - column);
        for (int64_t j = 0; j < width; ++j) acc[j] = Op::initial();
        for (int64_t i = from - rows.ids; i < next - rows.ids; ++i) {
          if (i % kTile == 0) context.check_cancelled();
          const int64_t row = rows.indices == nullptr ? i : rows.indices[i];
          const auto* in = static_cast<const typename Op::In*>(rows.data) +
                           row * rows.size + column;
          for (int64_t j = 0; j < width; ++j)
            acc[j] = Op::combine(acc[j], Op::load(in[j]));
        }
        for (int64_t j = 0; j < width; ++j)
          to[column + j] = Op::finish(acc[j], next - from);
      }
      from = next;
    }
  });
}

}  // namespace tagflow::devices
