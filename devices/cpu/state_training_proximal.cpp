// Rules that shrink what they come to, by l1 and l2.
#include <cmath>

#include "devices/cpu/state_training.h"

namespace tagflow::devices {

namespace {

// What minimises |x - goal|^2 / 2 + rate * (l1 |x| + l2 x^2 / 2).
template <class R>
R shrunk(R goal, R rate, R l1, R l2) {
  const R size = std::abs(goal) - rate * l1;
  const R soft = size > 0 ? sign_of(goal) * size : R(0) * goal;
  return (l1 > 0 ? soft : goal) / (R(1) + l2 * rate);
}

// ApplyProximalGradientDescent.
template <class R>
struct ProximalGradientDescent {
  static constexpr int kStates = 1;
  static constexpr double kCost = 0.7;
  R alpha, l1, l2;

  ProximalGradientDescent(const double* scalars, bool)
      : alpha(R(scalars[0])), l1(R(scalars[1])), l2(R(scalars[2])) {}
  void operator()(R g, R& var) const {
    var = shrunk(var - alpha * g, alpha, l1, l2);
  }
};

// ApplyProximalAdagrad.
template <class R>
struct ProximalAdagrad {
  static constexpr int kStates = 2;
  static constexpr double kCost = 1.2;
  R lr, l1, l2;

  ProximalAdagrad(const double* scalars, bool)
      : lr(R(scalars[0])), l1(R(scalars[1])), l2(R(scalars[2])) {}
  void operator()(R g, R& var, R& accum) const {
    accum += g * g;
    const R rate = lr / std::sqrt(accum);
    var = shrunk(var - rate * g, rate, l1, l2);
  }
};

// ApplyAdagradDA.
template <class R>
struct AdagradDA {
  static constexpr int kStates = 3;
  static constexpr double kCost = 1.3;
  R lr, l1, l2, step;

  AdagradDA(const double* scalars, bool)
      : lr(R(scalars[0])),
        l1(R(scalars[1])),
        l2(R(scalars[2])),
        step(R(scalars[3])) {}
  void operator()(R g, R& var, R& sum, R& squares) const {
    sum += g;
    squares += g * g;
    const R size = std::abs(sum) - l1 * step;
    const R soft = size > 0 ? sign_of(sum) * size : R(0) * sum;
    var = -lr * (l1 > 0 ? soft : sum) / (l2 * step * lr + std::sqrt(squares));
  }
};

}  // namespace

void add_proximal_rules(KernelRegistry& registry) {
  add_optimizer<ProximalGradientDescent>(registry, "ProximalGradientDescent");
  add_optimizer<ProximalAdagrad>(registry, "ProximalAdagrad");
  add_optimizer<AdagradDA>(registry, "AdagradDA");
}

}  // namespace tagflow::devices
