// Learning rates that change from step to step, as tensors.
//
//   const ScopedVariable step = global_step(s, vars);
//   const Output rate = schedules::cosine_decay(s, 0.1, step.read(s),
//                                               {.decay_steps = 1000});
//   optimizers::sgd(vars, rate).minimize(s, loss, weights,
//                                        {.global_step = step});
//
// All are functions of the number of completed steps, an integer or
// floating-point tensor, or a literal. The rate has the type of `rate`, float
// for a number, and the step's shape (a scalar). In formulas, t is the step and
// r `rate`. Thread-compatible, like the graph. The scope fails if options
// are out of range.
#pragma once

#include <vector>

#include "graph/builder/scope.h"

namespace tagflow::autodiff::schedules {

using graph::Output;

struct ExponentialDecay {
  int64_t decay_steps = 1;  // positive
  double decay_rate = 1;    // positive
  bool staircase = false;   // only whole multiples of decay_steps count
};
// r decay_rate^(t / decay_steps); with `staircase` the exponent is rounded
// down.
Output exponential_decay(const graph::Scope& s, const graph::Input& rate,
                         const graph::Input& step,
                         const ExponentialDecay& options);

struct CosineDecay {
  int64_t decay_steps = 1;  // positive
  double alpha = 0;         // the share of r at the end
};
// r (alpha + (1 - alpha) (1 + cos(pi p)) / 2), where p = min(t / decay_steps,
// 1) (Loshchilov and Hutter, "SGDR", 2017, formula 5, without restarts).
Output cosine_decay(const graph::Scope& s, const graph::Input& rate,
                    const graph::Input& step, const CosineDecay& options);

// rates[0] up to step boundaries[0], that step included, then rates[1] up to
// boundaries[1], and so on; the last one forever. Boundaries increase, and
// there is one more rate than boundaries. The result has type `dtype`.
Output piecewise_constant(const graph::Scope& s, const graph::Input& step,
                          const std::vector<int64_t>& boundaries,
                          const std::vector<double>& rates,
                          DataType dtype = DataType::kFloat);

struct Warmup {
  int64_t steps = 1;  // positive
  double start = 0;   // the share of r at step 0
};
// r (start + (1 - start) min(t / steps, 1)): reduces another schedule at first
// (Goyal et al., "Accurate, large minibatch SGD", 2017, 2.2).
Output warmup(const graph::Scope& s, const graph::Input& rate,
              const graph::Input& step, const Warmup& options);

}  // namespace tagflow::autodiff::schedules
