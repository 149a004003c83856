// Rules that follow the gradient, as it is, with momentum, or by its sign.
#include <cmath>

#include "devices/cpu/state_training.h"

namespace tagflow::devices {

namespace {

// ApplyGradientDescent.
template <class R>
struct GradientDescent {
  static constexpr int kStates = 1;
  static constexpr double kCost = 0.4;
  R alpha;

  GradientDescent(const double* scalars, bool) : alpha(R(scalars[0])) {}
  void operator()(R g, R& var) const { var -= alpha * g; }
};

// ApplyMomentum.
template <class R>
struct Momentum {
  static constexpr int kStates = 2;
  static constexpr double kCost = 0.7;
  R lr, momentum;
  bool nesterov;

  Momentum(const double* scalars, bool use_nesterov)
      : lr(R(scalars[0])), momentum(R(scalars[1])), nesterov(use_nesterov) {}
  void operator()(R g, R& var, R& accum) const {
    accum = accum * momentum + g;
    var -= nesterov ? lr * (g + momentum * accum) : lr * accum;
  }
};

// ResourceApplyKerasMomentum: the learning rate is in the accumulator.
template <class R>
struct KerasMomentum {
  static constexpr int kStates = 2;
  static constexpr double kCost = 0.7;
  R lr, momentum;
  bool nesterov;

  KerasMomentum(const double* scalars, bool use_nesterov)
      : lr(R(scalars[0])), momentum(R(scalars[1])), nesterov(use_nesterov) {}
  void operator()(R g, R& var, R& accum) const {
    accum = accum * momentum - lr * g;
    var += nesterov ? accum * momentum - lr * g : accum;
  }
};

// ApplyAddSign.
template <class R>
struct AddSign {
  static constexpr int kStates = 2;
  static constexpr double kCost = 0.8;
  R lr, alpha, sign_decay, beta;

  AddSign(const double* scalars, bool)
      : lr(R(scalars[0])),
        alpha(R(scalars[1])),
        sign_decay(R(scalars[2])),
        beta(R(scalars[3])) {}
  void operator()(R g, R& var, R& m) const {
    m = m * beta + g * (R(1) - beta);
    var -= lr * (alpha + sign_decay * (sign_of(g) * sign_of(m))) * g;
  }
};

// ApplyPowerSign.
template <class R>
struct PowerSign {
  static constexpr int kStates = 2;
  static constexpr double kCost = 1;
  R lr, beta;
  R agree, differ;  // the factors where the signs do

  PowerSign(const double* scalars, bool)
      : lr(R(scalars[0])),
        beta(R(scalars[3])),
        agree(R(std::exp(R(scalars[1]) * R(scalars[2])))),
        differ(R(std::exp(-R(scalars[1]) * R(scalars[2])))) {}
  void operator()(R g, R& var, R& m) const {
    m = m * beta + g * (R(1) - beta);
    const R signs = sign_of(g) * sign_of(m);
    const R factor = signs > 0 ? agree : (signs < 0 ? differ : R(1) + signs);
    var -= lr * factor * g;
  }
};

}  // namespace

void add_momentum_rules(KernelRegistry& registry) {
  add_optimizer<GradientDescent>(registry, "GradientDescent");
  add_optimizer<Momentum>(registry, "Momentum");
  add_optimizer<KerasMomentum>(registry, "KerasMomentum");
  add_optimizer<AddSign>(registry, "AddSign");
  add_optimizer<PowerSign>(registry, "PowerSign");
}

}  // namespace tagflow::devices
