// Rules that follow the mean of the gradients, by how large they were.
#include <cmath>

#include "devices/cpu/state_training.h"

namespace tagflow::devices {

namespace {

// What Adam and its relatives have in common: the two means.
template <class R>
struct Moments {
  R rate, beta1, beta2, epsilon;

  // Of beta1_power, beta2_power, lr, beta1, beta2, epsilon.
  explicit Moments(const double* scalars)
      : rate(R(scalars[2]) * std::sqrt(R(1) - R(scalars[1])) /
             (R(1) - R(scalars[0]))),
        beta1(R(scalars[3])),
        beta2(R(scalars[4])),
        epsilon(R(scalars[5])) {}
  void add(R g, R& m, R& v) const {
    m += (g - m) * (R(1) - beta1);
    v += (g * g - v) * (R(1) - beta2);
  }
};

// ApplyAdam. Of a sparse gradient, rows and slots that it does not name stay
// as they are.
template <class R>
struct Adam : Moments<R> {
  static constexpr int kStates = 3;
  static constexpr double kCost = 1.3;
  bool nesterov;

  Adam(const double* scalars, bool use_nesterov)
      : Moments<R>(scalars), nesterov(use_nesterov) {}
  void operator()(R g, R& var, R& m, R& v) const {
    this->add(g, m, v);
    const R mean = nesterov ? g * (R(1) - this->beta1) + this->beta1 * m : m;
    var -= this->rate * mean / (std::sqrt(v) + this->epsilon);
  }
};

// ResourceApplyAdamWithAmsgrad.
template <class R>
struct AdamWithAmsgrad : Moments<R> {
  static constexpr int kStates = 4;
  static constexpr double kCost = 1.6;

  AdamWithAmsgrad(const double* scalars, bool) : Moments<R>(scalars) {}
  void operator()(R g, R& var, R& m, R& v, R& most) const {
    this->add(g, m, v);
    most = most < v ? v : most;
    var -= this->rate * m / (std::sqrt(most) + this->epsilon);
  }
};

// ApplyAdaMax.
template <class R>
struct AdaMax {
  static constexpr int kStates = 3;
  static constexpr double kCost = 1.2;
  R rate, beta1, beta2, epsilon;

  AdaMax(const double* scalars, bool)
      : rate(R(scalars[1]) / (R(1) - R(scalars[0]))),
        beta1(R(scalars[2])),
        beta2(R(scalars[3])),
        epsilon(R(scalars[4])) {}
  void operator()(R g, R& var, R& m, R& v) const {
    m += (g - m) * (R(1) - beta1);
    const R decayed = beta2 * v, size = std::abs(g);
    v = decayed < size ? size : decayed;
    var -= rate * (m / (v + epsilon));
  }
};

}  // namespace

void add_adam_rules(KernelRegistry& registry) {
  add_optimizer<Adam>(registry, "Adam");
  add_optimizer<AdamWithAmsgrad>(registry, "AdamWithAmsgrad");
  add_optimizer<AdaMax>(registry, "AdaMax");
}

}  // namespace tagflow::devices
