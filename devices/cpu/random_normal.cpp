// RandomStandardNormal, TruncatedNormal and their stateless forms.
#include "devices/cpu/random_fill.h"

namespace tagflow::devices {

namespace {

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

// Of less than two standard deviations: others are drawn again, from the part
// of the stream that belongs to the group.
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

template <class... Ts>
void add_normals(KernelRegistry& registry) {
  (add_fill<StandardNormal<Ts>>(registry, "RandomStandardNormal",
                                RandomSource::kNode),
   ...);
  (add_fill<StandardNormal<Ts>>(registry, "StatelessRandomNormal",
                                RandomSource::kSeed),
   ...);
  (add_fill<StandardNormal<Ts>>(registry, "StatelessRandomNormalV2",
                                RandomSource::kKey),
   ...);
  (add_fill<CutNormal<Ts>>(registry, "TruncatedNormal", RandomSource::kNode),
   ...);
  (add_fill<CutNormal<Ts>>(registry, "StatelessTruncatedNormal",
                           RandomSource::kSeed),
   ...);
  (add_fill<CutNormal<Ts>>(registry, "StatelessTruncatedNormalV2",
                           RandomSource::kKey),
   ...);
}

}  // namespace

void register_random_normal_kernels(KernelRegistry& registry) {
  add_normals<Half, BFloat16, float, double>(registry);
}

}  // namespace tagflow::devices
