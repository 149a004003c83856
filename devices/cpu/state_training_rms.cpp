// Rules that divide by the root of the mean of the gradients' squares.
#include <cmath>

#include "devices/cpu/state_training.h"

namespace tagflow::devices {

namespace {

// ApplyRMSProp.
template <class R>
struct RMSProp {
  static constexpr int kStates = 3;
  static constexpr double kCost = 1.3;
  R lr, rho, momentum, epsilon;

  RMSProp(const double* scalars, bool)
      : lr(R(scalars[0])),
        rho(R(scalars[1])),
        momentum(R(scalars[2])),
        epsilon(R(scalars[3])) {}
  void operator()(R g, R& var, R& ms, R& mom) const {
    ms += (g * g - ms) * (R(1) - rho);
    mom = mom * momentum + lr * g / std::sqrt(ms + epsilon);
    var -= mom;
  }
};

// ApplyCenteredRMSProp: by their variance.
template <class R>
struct CenteredRMSProp {
  static constexpr int kStates = 4;
  static constexpr double kCost = 1.6;
  R lr, rho, momentum, epsilon;

  CenteredRMSProp(const double* scalars, bool)
      : lr(R(scalars[0])),
        rho(R(scalars[1])),
        momentum(R(scalars[2])),
        epsilon(R(scalars[3])) {}
  void operator()(R g, R& var, R& mg, R& ms, R& mom) const {
    ms += (g * g - ms) * (R(1) - rho);
    mg += (g - mg) * (R(1) - rho);
    mom = mom * momentum + lr * g / std::sqrt(ms - mg * mg + epsilon);
    var -= mom;
  }
};

}  // namespace

void add_rms_rules(KernelRegistry& registry) {
  add_optimizer<RMSProp>(registry, "RMSProp");
  add_optimizer<CenteredRMSProp>(registry, "CenteredRMSProp");
}

}  // namespace tagflow::devices
