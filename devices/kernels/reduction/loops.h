// The loops of reductions along dimensions.
//
// An Op defines the computation:
//   In, Acc, Out          element types of the input, the sum, the output; an
//                         Acc is trivially copyable, of at most 16 bytes
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
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "devices/kernels/reduction/plan.h"

namespace tagflow::devices {

// The parts of a reduction that know its types. All else is reduce(), which is
// compiled once for all. `acc` points to sums.
struct ReductionLoops {
  static constexpr size_t kMaxAccSize = 16;  // of complex128

  size_t in_size, acc_size, out_size;
  // acc[0] = the sum of `count` elements. REQUIRES: count > 0
  void (*sum_row)(const void* in, int64_t count, void* acc);
  // out[0, outputs) = the finished sums of as many rows of `count` elements,
  // which begin `stride` elements apart.
  void (*finish_rows)(const void* in, int64_t count, int64_t stride,
                      int64_t outputs, void* out);
  // acc[0, width) = the sums of nothing.
  void (*start)(int64_t width, void* acc);
  // Adds `count` rows, which begin `stride` elements apart, to acc[0, width).
  void (*add_rows)(const void* in, int64_t count, int64_t stride, int64_t width,
                   void* acc);
  // Adds other[0, width) to acc[0, width).
  void (*combine)(void* acc, const void* other, int64_t width);
  // out[0, width) = the finished acc[0, width), of `count` elements each.
  void (*finish)(const void* acc, int64_t width, int64_t count, void* out);
};

// Reduces all of `in` into `out`, sharded over the context's workers.
void reduce(const KernelContext& context, const ReductionPlan& plan,
            const ReductionLoops& loops, const void* in, void* out);

template <class Op>
struct PartialOf {
  using type = Op;
};
template <class Op>
requires requires { typename Op::Partial; }
struct PartialOf<Op> {
  using type = typename Op::Partial;
};

// The functions of ReductionLoops that compute sums, for an Op that has no
// Partial.
template <class Op>
struct SumLoops {
  using In = typename Op::In;
  using Acc = typename Op::Acc;
  static_assert(std::is_trivially_copyable_v<Acc> &&
                sizeof(Acc) <= ReductionLoops::kMaxAccSize &&
                alignof(Acc) <= ReductionLoops::kMaxAccSize);
  static constexpr int64_t kLanes = 64;

  static Acc sum(const In* in, int64_t count) {
    if (count < kLanes) {
      Acc sum = Op::load(in[0]);
      for (int64_t i = 1; i < count; ++i)
        sum = Op::combine(sum, Op::load(in[i]));
      return sum;
    }
    return sum_in_lanes(in, count);
  }

  static void sum_row(const void* in, int64_t count, void* acc) {
    *static_cast<Acc*>(acc) = sum(static_cast<const In*>(in), count);
  }

  static void start(int64_t width, void* acc) {
    std::fill_n(static_cast<Acc*>(acc), width, Op::initial());
  }

  static void combine(void* acc, const void* other, int64_t width) {
    auto* sums = static_cast<Acc*>(acc);
    const auto* more = static_cast<const Acc*>(other);
    for (int64_t j = 0; j < width; ++j) sums[j] = Op::combine(sums[j], more[j]);
  }

  static void add_rows(const void* input, int64_t count, int64_t stride,
                       int64_t width, void* acc) {
    const auto* in = static_cast<const In*>(input);
    auto* __restrict sums = static_cast<Acc*>(acc);
    // Contiguous rows are processed as fewer, longer ones.
    const int64_t together = kLanes / stride;
    if (width == stride && together > 1 && count >= 4 * together) {
      Acc wide[kLanes];
      const int64_t length = together * stride;
      for (int64_t j = 0; j < length; ++j) wide[j] = Op::initial();
      for (; count >= together; count -= together, in += length)
        for (int64_t j = 0; j < length; ++j)
          wide[j] = Op::combine(wide[j], Op::load(in[j]));
      for (int64_t j = 0; j < length; ++j)
        sums[j % stride] = Op::combine(sums[j % stride], wide[j]);
    }
    for (; count >= 4; count -= 4, in += 4 * stride) {
      const In *second = in + stride, *third = second + stride,
               *fourth = third + stride;
      for (int64_t j = 0; j < width; ++j)
        sums[j] = Op::combine(
            sums[j],
            Op::combine(Op::combine(Op::load(in[j]), Op::load(second[j])),
                        Op::combine(Op::load(third[j]), Op::load(fourth[j]))));
    }
    for (; count > 0; --count, in += stride)
      for (int64_t j = 0; j < width; ++j)
        sums[j] = Op::combine(sums[j], Op::load(in[j]));
  }

 private:
  // Not inlined: it processes many elements, and has two callers.
  [[gnu::noinline]] static Acc sum_in_lanes(const In* in, int64_t count) {
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
};

// The functions of ReductionLoops that make outputs of sums.
template <class Op>
struct FinishLoops {
  using In = typename Op::In;
  using Acc = typename Op::Acc;
  using Out = typename Op::Out;

  static void finish_rows(const void* in, int64_t count, int64_t stride,
                          int64_t outputs, void* out) {
    using Sums = SumLoops<typename PartialOf<Op>::type>;
    const auto* row = static_cast<const In*>(in);
    auto* results = static_cast<Out*>(out);
    for (int64_t i = 0; i < outputs; ++i, row += stride)
      results[i] = Op::finish(Sums::sum(row, count), count);
  }

  static void finish(const void* acc, int64_t width, int64_t count, void* out) {
    const auto* sums = static_cast<const Acc*>(acc);
    auto* results = static_cast<Out*>(out);
    for (int64_t j = 0; j < width; ++j) results[j] = Op::finish(sums[j], count);
  }
};

template <class Op>
constexpr ReductionLoops make_reduction_loops() {
  using Sums = SumLoops<typename PartialOf<Op>::type>;
  using Finish = FinishLoops<Op>;
  return {.in_size = sizeof(typename Op::In),
          .acc_size = sizeof(typename Op::Acc),
          .out_size = sizeof(typename Op::Out),
          .sum_row = &Sums::sum_row,
          .finish_rows = &Finish::finish_rows,
          .start = &Sums::start,
          .add_rows = &Sums::add_rows,
          .combine = &Sums::combine,
          .finish = &Finish::finish};
}

// The loops of an Op.
template <class Op>
inline constexpr ReductionLoops kReductionLoops = make_reduction_loops<Op>();

}  // namespace tagflow::devices
