// RandomUniform, RandomUniformInt, their stateless forms, and
// NonDeterministicInts.
#include "devices/kernels/random/distributions.h"
#include "devices/kernels/random/fill.h"

namespace tagflow::devices {

namespace {

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
  // It has no seeds, so it uses the session's.
  (add_fill<UniformFullInt<Ts>>(registry, "NonDeterministicInts",
                                RandomSource::kNode),
   ...);
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
