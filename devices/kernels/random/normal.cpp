// RandomStandardNormal, TruncatedNormal and their stateless forms.
#include "devices/kernels/random/distributions.h"
#include "devices/kernels/random/fill.h"

namespace tagflow::devices {

namespace {

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
