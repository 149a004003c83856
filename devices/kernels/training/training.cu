// Steps of optimizers, by the rules that all devices share.
#include "devices/cuda/device_code.cuh"
#include "devices/training_rules.h"

namespace tagflow::devices::cuda {
namespace {

template <class Rule, class T, int kStates>
__global__ void training_kernel(const Rule rule,
                                const __grid_constant__ TrainingArgs args) {
  using Real = Wide<T>;
  const T* const gradient = elements_of<T>(args.gradient);
  for (int64_t i = first_index(); i < args.total; i += index_step()) {
    Real states[kStates];
    for (int s = 0; s < kStates; ++s)
      states[s] = widen(elements_of<T>(args.before[s])[i]);
    const Real g = widen(gradient[i]);
    if constexpr (kStates == 1) {
      rule(g, states[0]);
    } else if constexpr (kStates == 2) {
      rule(g, states[0], states[1]);
    } else if constexpr (kStates == 3) {
      rule(g, states[0], states[1], states[2]);
    } else {
      rule(g, states[0], states[1], states[2], states[3]);
    }
    for (int s = 0; s < kStates; ++s)
      static_cast<T*>(args.after[s])[i] = narrow<T>(states[s]);
  }
}

template <template <class> class Rule>
cudaError_t train(Element type, const TrainingArgs& args,
                  cudaStream_t stream) {
  return with_floating(type, [&](auto zero) {
    using T = decltype(zero);
    using R = Rule<Wide<T>>;
    static_assert(R::kStates <= TrainingArgs::kMostStates);
    const R rule(args.scalars, args.option);
    training_kernel<R, T, R::kStates>
        <<<blocks_for(args.total), kThreads, 0, stream>>>(rule, args);
    return cudaGetLastError();
  });
}

struct FindRule {
  std::string_view wanted;
  TrainingStep found = nullptr;

  template <template <class> class Rule>
  void add(const char* name) {
    if (wanted == name) found = train<Rule>;
  }
};

}  // namespace

TrainingStep find_training_step(std::string_view rule) {
  FindRule find{rule};
  rules::visit_all(find);
  return find.found;
}

}  // namespace tagflow::devices::cuda
