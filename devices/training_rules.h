// Rules of optimizers: one step for an element of a variable and of its slots.
// Plain C++17 without our own headers, since the compiler for GPUs reads it
// too: so each rule is defined once for all devices.
//
// A rule is a struct that is constructed from the op's scalars, in the order of
// the op's inputs, and from its option: the boolean attribute that selects its
// variant, such as "use_nesterov". It is called with one element of the
// gradient, of the variable and of each slot.
//
//   template <class R>  // float or double
//   struct Momentum {
//     static constexpr int kStates = 2;      // the variable and its slots
//     static constexpr double kCost = 0.5;   // nanoseconds of an element
//     Momentum(const double* scalars, bool option);
//     void operator()(R gradient, R& var, R& accum) const;
//   };
//
// A rule may have a usual case that can be vectorised where the others cannot:
// then is_usual() tells whether it applies, and usual() returns its rule.
#pragma once

#include <cmath>
#include <string_view>

#ifdef __CUDACC__
#define TAGFLOW_ANYWHERE __host__ __device__
#else
#define TAGFLOW_ANYWHERE
#endif

namespace tagflow::devices::rules {

// Returns -1, 0 or 1; NaN for NaN.
template <class R>
TAGFLOW_ANYWHERE R sign_of(R x) {
  return x > 0 ? R(1) : (x < 0 ? R(-1) : x);
}

// --- The gradient, momentum, signs -------------------------------------------

// ApplyGradientDescent.
template <class R>
struct GradientDescent {
  static constexpr int kStates = 1;
  static constexpr double kCost = 0.4;
  R alpha;

  GradientDescent(const double* scalars, bool) : alpha(R(scalars[0])) {}
  TAGFLOW_ANYWHERE void operator()(R g, R& var) const { var -= alpha * g; }
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& accum) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& accum) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& m) const {
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
  R agree, differ;  // the factors for equal and for different signs

  PowerSign(const double* scalars, bool)
      : lr(R(scalars[0])),
        beta(R(scalars[3])),
        agree(R(std::exp(R(scalars[1]) * R(scalars[2])))),
        differ(R(std::exp(-R(scalars[1]) * R(scalars[2])))) {}
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& m) const {
    m = m * beta + g * (R(1) - beta);
    const R signs = sign_of(g) * sign_of(m);
    const R factor = signs > 0 ? agree : (signs < 0 ? differ : R(1) + signs);
    var -= lr * factor * g;
  }
};

// --- Shrinking by l1 and l2 --------------------------------------------------

// The x that minimises |x - goal|^2 / 2 + rate * (l1 |x| + l2 x^2 / 2).
template <class R>
TAGFLOW_ANYWHERE R shrunk(R goal, R rate, R l1, R l2) {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& accum) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& sum, R& squares) const {
    sum += g;
    squares += g * g;
    const R size = std::abs(sum) - l1 * step;
    const R soft = size > 0 ? sign_of(sum) * size : R(0) * sum;
    var = -lr * (l1 > 0 ? soft : sum) / (l2 * step * lr + std::sqrt(squares));
  }
};

// --- Adam and its relatives --------------------------------------------------

// The common part of Adam and its relatives: the two means.
template <class R>
struct Moments {
  R rate, beta1, beta2, epsilon;

  // From beta1_power, beta2_power, lr, beta1, beta2, epsilon.
  explicit Moments(const double* scalars)
      : rate(R(scalars[2]) * std::sqrt(R(1) - R(scalars[1])) /
             (R(1) - R(scalars[0]))),
        beta1(R(scalars[3])),
        beta2(R(scalars[4])),
        epsilon(R(scalars[5])) {}
  TAGFLOW_ANYWHERE void add(R g, R& m, R& v) const {
    m += (g - m) * (R(1) - beta1);
    v += (g * g - v) * (R(1) - beta2);
  }
};

// ApplyAdam. With a sparse gradient, rows and slots that it does not name stay
// as they are.
template <class R>
struct Adam : Moments<R> {
  static constexpr int kStates = 3;
  static constexpr double kCost = 1.3;
  bool nesterov;

  Adam(const double* scalars, bool use_nesterov)
      : Moments<R>(scalars), nesterov(use_nesterov) {}
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& m, R& v) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& m, R& v, R& most) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& m, R& v) const {
    m += (g - m) * (R(1) - beta1);
    const R decayed = beta2 * v, size = std::abs(g);
    v = decayed < size ? size : decayed;
    var -= rate * (m / (v + epsilon));
  }
};

// --- Adagrad and its relatives -----------------------------------------------

// ApplyAdagrad.
template <class R>
struct Adagrad {
  static constexpr int kStates = 2;
  static constexpr double kCost = 1;
  R lr;
  bool updates_slots;

  Adagrad(const double* scalars, bool update_slots)
      : lr(R(scalars[0])), updates_slots(update_slots) {}
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& accum) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& accum) const {
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& accum,
                                   R& accum_update) const {
    accum = accum * rho + g * g * (R(1) - rho);
    const R update =
        std::sqrt(accum_update + epsilon) / std::sqrt(accum + epsilon) * g;
    var -= lr * update;
    accum_update = accum_update * rho + update * update * (R(1) - rho);
  }
};

// --- RMSProp -----------------------------------------------------------------

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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& ms, R& mom) const {
    ms += (g * g - ms) * (R(1) - rho);
    mom = mom * momentum + lr * g / std::sqrt(ms + epsilon);
    var -= mom;
  }
};

// ApplyCenteredRMSProp: divides by the root of the variance.
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
  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& mg, R& ms, R& mom) const {
    ms += (g * g - ms) * (R(1) - rho);
    mg += (g - mg) * (R(1) - rho);
    mom = mom * momentum + lr * g / std::sqrt(ms - mg * mg + epsilon);
    var -= mom;
  }
};

// --- Follow the regularized leader -------------------------------------------

// The common part of both versions. `linear` may be scaled by the learning
// rate, and then so is everything that it is compared with.
template <class R>
struct FtrlScalars {
  R lr, l1, l2, shrinkage, power;
  bool multiplies;
};

// The accumulator's power is a root, or any other.
template <class R, bool kIsRoot>
struct FtrlStep : FtrlScalars<R> {
  explicit FtrlStep(const FtrlScalars<R>& scalars) : FtrlScalars<R>(scalars) {}

  TAGFLOW_ANYWHERE void operator()(R g, R& var, R& accum, R& linear) const {
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
  TAGFLOW_ANYWHERE R powered(R x) const {
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

// ApplyFtrlV2: with `shrinkage`, a penalty that is only in the gradient.
template <class R>
struct FtrlV2 : FtrlRule<R> {
  FtrlV2(const double* scalars, bool multiply_linear_by_lr)
      : FtrlRule<R>(FtrlScalars<R>{R(scalars[0]), R(scalars[1]), R(scalars[2]),
                                   R(scalars[3]), R(scalars[4]),
                                   multiply_linear_by_lr}) {}
};

// Whether an input of an optimizer's op, given by name, is the gradient.
inline bool is_gradient(std::string_view input) {
  return input == "grad" || input == "delta";
}

// Calls visitor.template add<Rule>(NAME) for every rule; its ops are
// (Resource)ApplyNAME and (Resource)SparseApplyNAME.
template <class Visitor>
void visit_all(Visitor&& visitor) {
  visitor.template add<GradientDescent>("GradientDescent");
  visitor.template add<Momentum>("Momentum");
  visitor.template add<KerasMomentum>("KerasMomentum");
  visitor.template add<AddSign>("AddSign");
  visitor.template add<PowerSign>("PowerSign");
  visitor.template add<ProximalGradientDescent>("ProximalGradientDescent");
  visitor.template add<ProximalAdagrad>("ProximalAdagrad");
  visitor.template add<AdagradDA>("AdagradDA");
  visitor.template add<Adam>("Adam");
  visitor.template add<AdamWithAmsgrad>("AdamWithAmsgrad");
  visitor.template add<AdaMax>("AdaMax");
  visitor.template add<Adagrad>("Adagrad");
  visitor.template add<AdagradV2>("AdagradV2");
  visitor.template add<Adadelta>("Adadelta");
  visitor.template add<RMSProp>("RMSProp");
  visitor.template add<CenteredRMSProp>("CenteredRMSProp");
  visitor.template add<Ftrl>("Ftrl");
  visitor.template add<FtrlV2>("FtrlV2");
}

}  // namespace tagflow::devices::rules
