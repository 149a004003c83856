// Follow the regularized leader.
#include <cmath>

#include "devices/cpu/state_training.h"

namespace tagflow::devices {

namespace {

// What both versions are made of. `linear` may be scaled by the learning rate,
// and then so is all that it is compared with.
template <class R>
struct FtrlScalars {
  R lr, l1, l2, shrinkage, power;
  bool multiplies;
};

// The accumulator's power is a root, or any.
template <class R, bool kIsRoot>
struct FtrlStep : FtrlScalars<R> {
  explicit FtrlStep(const FtrlScalars<R>& scalars) : FtrlScalars<R>(scalars) {}

  void operator()(R g, R& var, R& accum, R& linear) const {
    const R lr = this->lr;
    const R pushed = g + R(2) * this->shrinkage * var;
    const R before = powered(accum);
    accum += g * g;
    const R after = powered(accum);
    linear += this->multiplies ? pushed * lr - (after - before) * var
                               : pushed - (after - before) / lr * var;
    const R limit = this->multiplies ? this->l1 * lr : this->l1;
    const R quadratic = this->multiplies ? after + R(2) * this->l2 * lr
                                         : after / lr + R(2) * this->l2;
    const R kept = linear > limit ? limit : (linear < -limit ? -limit : linear);
    var = (kept - linear) / quadratic;
  }

 private:
  R powered(R x) const {
    if constexpr (kIsRoot) {
      return std::sqrt(x);
    } else {
      return std::pow(x, -this->power);
    }
  }
};

template <class R>
struct FtrlRule : FtrlStep<R, false> {
  static constexpr int kStates = 3;
  static constexpr double kCost = 2;

  using FtrlStep<R, false>::FtrlStep;
  bool is_usual() const { return this->power == R(-0.5); }
  FtrlStep<R, true> usual() const { return FtrlStep<R, true>(*this); }
};

// ApplyFtrl.
template <class R>
struct Ftrl : FtrlRule<R> {
  Ftrl(const double* scalars, bool multiply_linear_by_lr)
      : FtrlRule<R>(FtrlScalars<R>{R(scalars[0]), R(scalars[1]), R(scalars[2]),
                                   R(0), R(scalars[3]),
                                   multiply_linear_by_lr}) {}
};

// ApplyFtrlV2: with a penalty that is in the gradient only.
template <class R>
struct FtrlV2 : FtrlRule<R> {
  FtrlV2(const double* scalars, bool multiply_linear_by_lr)
      : FtrlRule<R>(FtrlScalars<R>{R(scalars[0]), R(scalars[1]), R(scalars[2]),
                                   R(scalars[3]), R(scalars[4]),
                                   multiply_linear_by_lr}) {}
};

}  // namespace

void add_ftrl_rules(KernelRegistry& registry) {
  add_optimizer<Ftrl>(registry, "Ftrl");
  add_optimizer<FtrlV2>(registry, "FtrlV2");
}

}  // namespace tagflow::devices
