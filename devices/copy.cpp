#include "devices/copy.h"

#include <algorithm>
#include <cstring>

#include "devices/element_mover.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

constexpr double kNanosecondsPerByte = 0.15;
// The maximum number of elements that one unit of sharded work moves in a row.
constexpr int64_t kRowBlock = 16384;
// The side of the squares in which a transposition walks: both sides of it stay
// in the first-level cache.
constexpr int64_t kTile = 32;
// Copies below this do not ask for other workers.
constexpr int64_t kInlineBytes = 1 << 15;

// Drops loops of one step, and merges neighbours if one continues the other.
void simplify(StridedCopy& copy) {
  size_t kept = 0;
  for (const CopyLoop& loop : copy.loops) {
    if (loop.count == 1) continue;
    if (kept > 0) {
      CopyLoop& outer = copy.loops[kept - 1];
      if (outer.from_stride == loop.from_stride * loop.count &&
          outer.to_stride == loop.to_stride * loop.count) {
        outer = {outer.count * loop.count, loop.from_stride, loop.to_stride};
        continue;
      }
    }
    copy.loops[kept++] = loop;
  }
  copy.loops.resize(kept);
}

// Both positions of a walk over some loops, as an odometer.
class Walk {
 public:
  Walk(const CopyLoops& loops, int64_t from, int64_t to, int64_t start)
      : loops_(loops), from_(from), to_(to) {
    at_.resize(loops.size());
    for (size_t i = loops.size(); i-- > 0;) {
      at_[i] = start % loops[i].count;
      start /= loops[i].count;
      from_ += at_[i] * loops[i].from_stride;
      to_ += at_[i] * loops[i].to_stride;
    }
  }

  void next() {
    for (size_t i = loops_.size(); i-- > 0;) {
      const CopyLoop& loop = loops_[i];
      from_ += loop.from_stride;
      to_ += loop.to_stride;
      if (++at_[i] < loop.count) return;
      at_[i] = 0;
      from_ -= loop.count * loop.from_stride;
      to_ -= loop.count * loop.to_stride;
    }
  }
  int64_t from() const { return from_; }
  int64_t to() const { return to_; }

 private:
  const CopyLoops& loops_;
  boost::container::small_vector<int64_t, 6> at_;
  int64_t from_, to_;
};

template <class T>
void copy_row(const ElementWriter<T>& writer, const T* from, T* to,
              const CopyLoop& row, int64_t count) {
  if (row.to_stride == 1 && row.from_stride == 1) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      std::memcpy(static_cast<void*>(to), from, size_t(count) * sizeof(T));
    } else {
      writer.copy(from, count, to);
    }
  } else if (row.to_stride == 1 && row.from_stride == 0) {
    writer.fill(to, count, *from);
  } else {
    for (int64_t i = 0; i < count; ++i)
      writer.assign(to[i * row.to_stride], from[i * row.from_stride]);
  }
}

// The two innermost loops, square by square.
template <class T>
void copy_tile(const ElementWriter<T>& writer, const T* from, T* to,
               const CopyLoop& outer, const CopyLoop& inner,
               int64_t outer_count) {
  for (int64_t begin = 0; begin < inner.count; begin += kTile) {
    const int64_t end = std::min(begin + kTile, inner.count);
    for (int64_t i = 0; i < outer_count; ++i) {
      const T* source = from + i * outer.from_stride;
      T* target = to + i * outer.to_stride;
      for (int64_t j = begin; j < end; ++j)
        writer.assign(target[j * inner.to_stride],
                      source[j * inner.from_stride]);
    }
  }
}

// A transposition reads far apart in its innermost loop: moves the loop that
// reads neighbours next to it. False if there is no such loop.
bool arrange_for_tiles(StridedCopy& copy) {
  auto& loops = copy.loops;
  if (loops.size() < 2) return false;
  const CopyLoop inner = loops.back();
  if (inner.from_stride == 1 || inner.from_stride == 0 || inner.count < 4)
    return false;
  for (size_t i = loops.size() - 1; i-- > 0;) {
    if (loops[i].from_stride != 1 || loops[i].count < 4) continue;
    std::rotate(loops.begin() + int64_t(i), loops.begin() + int64_t(i) + 1,
                loops.end() - 1);
    return true;
  }
  return false;
}

template <class T>
void run_copy(const KernelContext& context, StridedCopy& copy, const T* from,
              Tensor& result) {
  const ElementWriter<T> writer(result);
  T* const to = static_cast<T*>(result.mutable_raw());
  if (copy.loops.empty()) {
    writer.assign(to[copy.to], from[copy.from]);
    return;
  }
  const bool tiled = arrange_for_tiles(copy);
  const CopyLoop inner = copy.loops.back();
  copy.loops.pop_back();
  // The loop that is divided into blocks, the units of work.
  CopyLoop blocked = inner;
  if (tiled) {
    blocked = copy.loops.back();
    copy.loops.pop_back();
  }
  const int64_t block = tiled ? kTile : kRowBlock;
  const int64_t blocks = (blocked.count + block - 1) / block;
  int64_t rows = 1;
  for (const CopyLoop& loop : copy.loops) rows *= loop.count;

  auto body = [&](int64_t begin, int64_t end) {
    Walk walk(copy.loops, copy.from, copy.to, begin / blocks);
    int64_t first = begin % blocks;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t start = first * block;
      const int64_t count = std::min(block, blocked.count - start);
      const T* source = from + walk.from() + start * blocked.from_stride;
      T* target = to + walk.to() + start * blocked.to_stride;
      if (tiled) {
        copy_tile(writer, source, target, blocked, inner, count);
      } else {
        copy_row(writer, source, target, inner, count);
      }
      if (++first == blocks) {
        first = 0;
        walk.next();
      }
    }
  };
  const int64_t units = rows * blocks;
  const double unit_bytes = double(sizeof(T)) *
                            double(std::min(block, blocked.count)) *
                            (tiled ? double(inner.count) : 1.0);
  if (double(units) * unit_bytes < kInlineBytes) {
    body(0, units);
  } else {
    context.parallel_for(units, 2 + unit_bytes * kNanosecondsPerByte, body);
  }
}

}  // namespace

Shape::Dims row_major_strides(std::span<const int64_t> dims) {
  Shape::Dims strides(dims.size());
  uint64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = int64_t(stride);
    stride *= uint64_t(dims[i]);
  }
  return strides;
}

int64_t product(std::span<const int64_t> dims, int begin, int end) {
  uint64_t count = 1;
  for (int i = begin; i < end; ++i) count *= uint64_t(dims[size_t(i)]);
  return int64_t(count);
}

void StridedCopy::reverse() {
  std::swap(from, to);
  for (CopyLoop& loop : loops) std::swap(loop.from_stride, loop.to_stride);
}

void strided_copy(const KernelContext& context, StridedCopy copy,
                  const Tensor& from, Tensor& to) {
  for (const CopyLoop& loop : copy.loops)
    if (loop.count == 0) return;
  simplify(copy);
  if (ElementMover* mover = mover_for(context, to))
    return mover->move(copy, from, to);
  visit_movable(to.dtype(), [&]<class T>(TypeTag<T>) {
    run_copy(context, copy, static_cast<const T*>(from.raw()), to);
  });
}

void copy_elements(const Tensor& from, int64_t from_at, Tensor& to,
                   int64_t to_at, int64_t count) {
  if (count <= 0) return;
  visit_movable(to.dtype(), [&]<class T>(TypeTag<T>) {
    copy_row(ElementWriter<T>(to), static_cast<const T*>(from.raw()) + from_at,
             static_cast<T*>(to.mutable_raw()) + to_at, {0, 1, 1}, count);
  });
}

void copy_elements(const KernelContext& context, const Tensor& from,
                   int64_t from_at, Tensor& to, int64_t to_at, int64_t count) {
  ElementMover* mover = mover_for(context, to);
  if (mover == nullptr) return copy_elements(from, from_at, to, to_at, count);
  if (count <= 0) return;
  StridedCopy copy{{}, from_at, to_at};
  copy.add(count, 1, 1);
  mover->move(copy, from, to);
}

Result<Tensor*> input_as_output(KernelContext& context) {
  const Tensor& input = context.input(0);
  TAGFLOW_ASSIGN(Tensor * output,
                 context.forward_or_allocate(0, 0, input.shape()));
  if (output->raw() != input.raw())
    copy_elements(context, input, 0, *output, 0, input.num_elements());
  return output;
}

void fill_elements(const KernelContext& context, const Tensor& value,
                   Tensor& to) {
  StridedCopy copy;
  copy.add(to.num_elements(), 0, 1);
  strided_copy(context, copy, value, to);
}

void zero_elements(const KernelContext& context, Tensor& to) {
  if (!is_plain(to.dtype()) || to.num_elements() == 0) return;
  if (ElementMover* mover = mover_for(context, to)) return mover->clear(to);
  auto* bytes = static_cast<std::byte*>(to.mutable_raw());
  const auto count = int64_t(to.bytes());
  auto body = [bytes](int64_t begin, int64_t end) {
    std::memset(bytes + begin, 0, size_t(end - begin));
  };
  if (count < kInlineBytes) {
    body(0, count);
  } else {
    context.parallel_for(count, kNanosecondsPerByte, body);
  }
}

}  // namespace tagflow::devices
