// Follow the regularized leader.
#include <cmath>

#include "devices/cpu/state_training.h"

namespace tagflow::devices {

namespace {

// What both versions have in common. `linear` may be scaled by the learning
// rate, and then so is all that it is compared with.
template <class R>
struct FtrlBase {
  R lr, l1, l2, shrinkage, power;
  bool multiplies;

  void step(R g, R& var, R& accum, R& linear) const {
    const R pushed = g + R(2) * shrinkage * var;
    const R before = root(accum);
    accum += g * g;
    const R after = root(accum);
    linear += multiplies ? pushed * lr - (after - before) * var
                         : pushed - (after - before) / lr * var;
    const R limit = multiplies ? l1 * lr : l1;
    const R quadratic =
        multiplies ? after + R(2) * l2 * lr : after / lr + R(2) * l2;
    const R kept = linear > limit ? limit : (linear < -limit ? -limit : linear);
    var = (kept - linear) / quadratic;
  }

 private:
  R root(R x) const {
    return power == R(-0.5) ? std::sqrt(x) : std::pow(x, -power);
  }
};

// ApplyFtrl.
template <class R>
struct Ftrl : FtrlBase<R> {
  static constexpr int kStates = 3;
  static constexpr double kCost = 2;

  Ftrl(const double* scalars, bool multiply_linear_by_lr)
      : FtrlBase<R>{R(scalars[0]), R(scalars[1]), R(scalars[2]),
                    R(0),          R(scalars[3]), multiply_linear_by_lr} {}
  void operator()(R g, R& var, R& accum, R& linear) const {
    this->step(g, var, accum, linear);
  }
};

// ApplyFtrlV2: with a penalty that is in the gradient only.
template <class R>
struct FtrlV2 : FtrlBase<R> {
  static constexpr int kStates = 3;
  static constexpr double kCost = 2;

  FtrlV2(const double* scalars, bool multiply_linear_by_lr)
      : FtrlBase<R>{R(scalars[0]), R(scalars[1]), R(scalars[2]),
                    R(scalars[3]), R(scalars[4]), multiply_linear_by_lr} {}
  void operator()(R g, R& var, R& accum, R& linear) const {
    this->step(g, var, accum, linear);
  }
};

}  // namespace

void add_ftrl_rules(KernelRegistry& registry) {
  add_optimizer<Ftrl>(registry, "Ftrl");
  add_optimizer<FtrlV2>(registry, "FtrlV2");
}

}  // namespace tagflow::devices
