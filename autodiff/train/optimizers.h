// The usual algorithms for optimizer.h. g is the gradient of a variable w, and
// all formulas are element-wise.
//
// Each function returns an optimizer whose slots are made in `vars`, and adds
// nothing to a graph yet. `learning_rate` is a floating-point scalar: a number,
// or a tensor, such as one of schedule.h. Numbers are not checked.
// Thread-compatible.
#pragma once

#include <functional>

#include "autodiff/train/optimizer.h"

namespace tagflow::autodiff::optimizers {

// w -= rate g.
Optimizer sgd(const graph::VariableScope& vars,
              const graph::Input& learning_rate);

struct MomentumOptions {
  graph::Input momentum = 0.9;  // a scalar
  // Uses the gradient at the point to which the momentum leads (Sutskever et
  // al., "On the importance of initialization and momentum in deep learning",
  // 2013):
  // w -= rate (g + momentum a).
  bool nesterov = false;
};
// a = momentum a + g; w -= rate a. The slot a is "momentum": "w/Momentum".
Optimizer momentum(const graph::VariableScope& vars,
                   const graph::Input& learning_rate,
                   const MomentumOptions& options = {});

struct AdagradOptions {
  double initial_accumulator = 0.1;  // positive
};
// a += g^2; w -= rate g / sqrt(a) (Duchi, Hazan and Singer, "Adaptive
// subgradient methods", 2011). The slot a is "accumulator": "w/Adagrad".
Optimizer adagrad(const graph::VariableScope& vars,
                  const graph::Input& learning_rate,
                  const AdagradOptions& options = {});

struct RmspropOptions {
  double decay = 0.9;
  double momentum = 0;
  double epsilon = 1e-10;
  bool centered = false;  // divides by the deviation: subtracts mean(g)^2
};
// r = decay r + (1 - decay) g^2; a = momentum a + rate g / sqrt(r + epsilon);
// w -= a (Tieleman and Hinton, "Lecture 6.5: RMSProp", 2012). Centered, g has a
// mean m like that of g^2, and the root is that of r - m^2 + epsilon (Graves,
// "Generating sequences with recurrent neural networks", 2013). The slots are
// "rms", which begins as 1, "mg" for m if there is one, and "momentum":
// "w/RMSProp", "w/RMSProp_1", "w/RMSProp_2".
Optimizer rmsprop(const graph::VariableScope& vars,
                  const graph::Input& learning_rate,
                  const RmspropOptions& options = {});

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  // A sparse gradient updates only its rows and their slots. If false, all rows
  // are updated by m, as in TensorFlow's AdamOptimizer; that costs as much as a
  // dense gradient.
  bool lazy = true;
};
// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; at step t w -=
// rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon) (Kingma and
// Ba, "Adam", 2015, end of section 2). The slots are "m" and "v": "w/Adam" and
// "w/Adam_1"; the powers of the betas are "beta1_power" and "beta2_power", of
// the type of the first variable, or float if that is smaller.
Optimizer adam(const graph::VariableScope& vars,
               const graph::Input& learning_rate,
               const AdamOptions& options = {});

struct AdamwOptions {
  AdamOptions adam = {};
  double weight_decay = 0.01;
  // Whether a variable decays; usually kernels do, and biases do not. Empty:
  // all do.
  std::function<bool(const graph::ScopedVariable&)> decays = {};
};
// adam() that also subtracts rate * weight_decay * w from w, instead of adding
// a penalty to the loss (Loshchilov and Hutter, "Decoupled weight decay
// regularization", 2019, algorithm 2, whose schedule is in the rate). Slots are
// "w/AdamW" and "w/AdamW_1".
Optimizer adamw(const graph::VariableScope& vars,
                const graph::Input& learning_rate,
                const AdamwOptions& options = {});

}  // namespace tagflow::autodiff::optimizers
