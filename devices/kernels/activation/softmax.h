// Rows of exponentials, for softmax and the losses over it.
#pragma once

#include <algorithm>
#include <type_traits>

#include "devices/kernels/elementwise/vector_math.h"
#include "graph/dtype.h"

namespace tagflow::devices {

// The type in which rows of T are computed.
template <class T>
using SoftmaxWork =
    std::conditional_t<std::is_same_v<T, double>, double, float>;

// The largest of `count` >= 1 elements; NaN if one of them is.
template <class W>
W row_max(const W* in, int64_t count) {
  constexpr int64_t kLanes = 16;
  W lanes[kLanes];
  std::fill_n(lanes, kLanes, in[0]);
  const auto larger = [](W a, W b) { return a > b || a != a ? a : b; };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = larger(lanes[j], in[i + j]);
  W best = lanes[0];
  for (W lane : lanes) best = larger(best, lane);
  for (; i < count; ++i) best = larger(best, in[i]);
  return best;
}

// The sum of `count` elements, in several chains.
template <class W>
W row_sum(const W* in, int64_t count) {
  constexpr int64_t kLanes = 16;
  W lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] += in[i + j];
  W sum = 0;
  for (; i < count; ++i) sum += in[i];
  for (W lane : lanes) sum += lane;
  return sum;
}

// shifted[i] = in[i] - max(in), exps[i] = e^shifted[i]; returns the sum of
// the latter. `exps` may be `shifted`. REQUIRES: count >= 1
template <class T, class W>
W exp_row(const T* in, int64_t count, W* shifted, W* exps) {
  for (int64_t i = 0; i < count; ++i) shifted[i] = static_cast<W>(in[i]);
  const W best = row_max(shifted, count);
  for (int64_t i = 0; i < count; ++i) shifted[i] -= best;
  for (int64_t i = 0; i < count; ++i) exps[i] = vector_math::exp(shifted[i]);
  return row_sum(exps, count);
}

}  // namespace tagflow::devices
