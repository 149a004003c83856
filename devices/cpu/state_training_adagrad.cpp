// Rules that divide by the root of what the squares of the gradients sum up to.
#include <cmath>

#include "devices/cpu/state_training.h"

namespace tagflow::devices {

namespace {

// ApplyAdagrad.
template <class R>
struct Adagrad {
  static constexpr int kStates = 2;
  static constexpr double kCost = 1;
  R lr;
  bool updates_slots;

  Adagrad(const double* scalars, bool update_slots)
      : lr(R(scalars[0])), updates_slots(update_slots) {}
  void operator()(R g, R& var, R& accum) const {
    accum = updates_slots ? accum + g * g : accum;
    var -= lr * g / std::sqrt(accum);
  }
};

// ApplyAdagradV2.
template <class R>
struct AdagradV2 {
  static constexpr int kStates = 2;
  static constexpr double kCost = 1;
  R lr, epsilon;
  bool updates_slots;

  AdagradV2(const double* scalars, bool update_slots)
      : lr(R(scalars[0])),
        epsilon(R(scalars[1])),
        updates_slots(update_slots) {}
  void operator()(R g, R& var, R& accum) const {
    accum = updates_slots ? accum + g * g : accum;
    var -= lr * g / (std::sqrt(accum) + epsilon);
  }
};

// ApplyAdadelta.
template <class R>
struct Adadelta {
  static constexpr int kStates = 3;
  static constexpr double kCost = 1.5;
  R lr, rho, epsilon;

  Adadelta(const double* scalars, bool)
      : lr(R(scalars[0])), rho(R(scalars[1])), epsilon(R(scalars[2])) {}
  void operator()(R g, R& var, R& accum, R& accum_update) const {
    accum = accum * rho + g * g * (R(1) - rho);
    const R update =
        std::sqrt(accum_update + epsilon) / std::sqrt(accum + epsilon) * g;
    var -= lr * update;
    accum_update = accum_update * rho + update * update * (R(1) - rho);
  }
};

}  // namespace

void add_adagrad_rules(KernelRegistry& registry) {
  add_optimizer<Adagrad>(registry, "Adagrad");
  add_optimizer<AdagradV2>(registry, "AdagradV2");
  add_optimizer<Adadelta>(registry, "Adadelta");
}

}  // namespace tagflow::devices
