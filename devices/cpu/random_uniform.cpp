// RandomUniform, RandomUniformInt and their stateless forms.
#include "devices/cpu/random_fill.h"

namespace tagflow::devices {

namespace {

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

// Of [minval, maxval), by the remainder: a bias where the size of the range is
// no power of 2, which TensorFlow has as well.
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

// Of all integers of the type.
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

template <class... Ts>
void add_reals(KernelRegistry& registry) {
  (add_fill<UniformReal<Ts>>(registry, "RandomUniform", RandomSource::kNode),
   ...);
  (add_fill<UniformReal<Ts>>(registry, "StatelessRandomUniform",
                             RandomSource::kSeed),
   ...);
  (add_fill<UniformReal<Ts>>(registry, "StatelessRandomUniformV2",
                             RandomSource::kKey),
   ...);
}

template <class... Ts>
void add_integers(KernelRegistry& registry) {
  (add_fill<UniformInt<Ts>>(registry, "RandomUniformInt", RandomSource::kNode,
                            "Tout"),
   ...);
  (add_fill<UniformInt<Ts>>(registry, "StatelessRandomUniformInt",
                            RandomSource::kSeed),
   ...);
  (add_fill<UniformInt<Ts>>(registry, "StatelessRandomUniformIntV2",
                            RandomSource::kKey),
   ...);
}

template <class... Ts>
void add_full_integers(KernelRegistry& registry) {
  (add_fill<UniformFullInt<Ts>>(registry, "StatelessRandomUniformFullInt",
                                RandomSource::kSeed),
   ...);
  (add_fill<UniformFullInt<Ts>>(registry, "StatelessRandomUniformFullIntV2",
                                RandomSource::kKey),
   ...);
}

}  // namespace

void register_random_uniform_kernels(KernelRegistry& registry) {
  add_reals<Half, BFloat16, float, double>(registry);
  add_integers<int32_t, int64_t>(registry);
  add_full_integers<int32_t, int64_t, uint32_t, uint64_t>(registry);
}

}  // namespace tagflow::devices
