// Private to devices/kernels/random/: the distributions with which outputs are
// filled. See random/fill.h.
#pragma once

#include "devices/kernels/random/numbers.h"
#include "devices/kernels/random/stream.h"

namespace tagflow::devices {

template <class T>
struct UniformReal {
  using Element = T;
  static constexpr int kGroup = kElementsOfBlock<T>;
  static constexpr int kBlocks = 1;
  static constexpr double kNanoseconds = 16.0 / kGroup;

  static Result<UniformReal> make(const KernelContext&, int) {
    return UniformReal();
  }
  void draw(Philox stream, T* group) const {
    const Philox::Block block = stream.next();
    for (int i = 0; i < kGroup; ++i) group[i] = unit_of_block<T>(block, i);
  }
};

// Integers of [minval, maxval), by the remainder: biased if the size of the
// range is not a power of 2, as in TensorFlow.
template <class T>
struct UniformInt {
  using Element = T;
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr int kGroup = kElementsOfBlock<T>;
  static constexpr int kBlocks = 1;
  static constexpr double kNanoseconds = 16.0 / kGroup;

  static Result<UniformInt> make(const KernelContext& context, int first) {
    const Tensor& low = context.input(first);
    const Tensor& high = context.input(first + 1);
    if (!low.is_scalar())
      return context.fail("minval must be a scalar, got {}", low.describe());
    if (!high.is_scalar())
      return context.fail("maxval must be a scalar, got {}", high.describe());
    const T from = low.scalar_value<T>(), to = high.scalar_value<T>();
    if (from >= to)
      return context.fail("minval must be less than maxval, but {} >= {}", from,
                          to);
    return UniformInt{Unsigned(from), Unsigned(Unsigned(to) - Unsigned(from))};
  }
  void draw(Philox stream, T* group) const {
    const Philox::Block block = stream.next();
    for (int i = 0; i < kGroup; ++i)
      group[i] = T(low + bits_of_block<T>(block, i) % size);
  }

  Unsigned low;
  Unsigned size;
};

// All integers of the type.
template <class T>
struct UniformFullInt {
  using Element = T;
  static constexpr int kGroup = kElementsOfBlock<T>;
  static constexpr int kBlocks = 1;
  static constexpr double kNanoseconds = 16.0 / kGroup;

  static Result<UniformFullInt> make(const KernelContext&, int) {
    return UniformFullInt();
  }
  void draw(Philox stream, T* group) const {
    const Philox::Block block = stream.next();
    for (int i = 0; i < kGroup; ++i) group[i] = T(bits_of_block<T>(block, i));
  }
};

template <class T>
struct StandardNormal {
  using Element = T;
  static constexpr int kGroup = kElementsOfBlock<T>;
  static constexpr int kBlocks = 1;
  static constexpr double kNanoseconds = 50.0 / kGroup;

  static Result<StandardNormal> make(const KernelContext&, int) {
    return StandardNormal();
  }
  void draw(Philox stream, T* group) const {
    NormalReal<T> normals[kGroup];
    normals_of_block<T>(stream.next(), normals);
    for (int i = 0; i < kGroup; ++i) group[i] = T(normals[i]);
  }
};

// Normal numbers within two standard deviations: others are redrawn, from the
// group's part of the stream.
template <class T>
struct CutNormal {
  using Element = T;
  static constexpr int kGroup = kElementsOfBlock<T>;
  static constexpr int kBlocks = 64 * kGroup;
  static constexpr double kNanoseconds = 65.0 / kGroup;

  static Result<CutNormal> make(const KernelContext&, int) {
    return CutNormal();
  }
  void draw(Philox stream, T* group) const {
    int drawn = 0;
    while (drawn < kGroup) {
      NormalReal<T> normals[kGroup];
      normals_of_block<T>(stream.next(), normals);
      for (int i = 0; i < kGroup && drawn < kGroup; ++i)
        if (std::abs(normals[i]) < 2) group[drawn++] = T(normals[i]);
    }
  }
};

}  // namespace tagflow::devices
