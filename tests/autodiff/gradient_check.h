// Gradients, checked by central differences: what tests of rules have in
// common.
//
//   check_gradients(
//       [](const Scope& s, const Outputs& x) { return ops::mul(s, x[0], x[1]);
//       }, {values({2, 3}), values({3})});
//
// Numbers stand for complex ones as in TensorFlow: the gradient of a real L by
// a complex z is dL/dRe(z) + i dL/dIm(z).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/builder/scope.h"
#include "graph/shape.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::autodiff::testing {

using Dims = Shape;

// A function of tensors x, built in the graph; its outputs are summed with
// fixed, irregular weights. It is called several times, for graphs of their
// own.
using Function =
    std::function<graph::Outputs(const graph::Scope&, const graph::Outputs& x)>;

struct CheckOptions {
  // Gradients of order k are checked by differences of those of order k - 1.
  int order = 2;
  double step = 1e-5;
  // A difference d and a gradient may be apart by tolerance * (1 + |d|).
  double tolerance = 1e-6;
  // Checks f again if the graph says of no x which shape it has.
  bool unknown_shapes = true;
};

// CHECKs that the gradients of f by all xs at these values agree with central
// differences, and so do the tangents that forward mode makes, of f and of its
// gradients but the last, and the gradients of f's tangents. A gradient that
// there is none of counts as zeros. The message names the line that called, the
// x, the element and both values. xs and what f returns are of double or
// complex128.
void check_gradients(const Function& f, const std::vector<Tensor>& xs,
                     const CheckOptions& options = {},
                     int line = __builtin_LINE());

// What check_gradients() has to say; "" if all gradients agree. An error
// if f cannot be differentiated, or does not run.
Result<std::string> wrong_gradients(const Function& f,
                                    const std::vector<Tensor>& xs,
                                    const CheckOptions& options = {});

// The gradients of sum(f(x)) by xs, as tensors, for closed-form checks; zeros
// if there is none. xs may be of any type that has gradients. Fails the
// test if there is an error.
std::vector<Tensor> gradients_of(const Function& f,
                                 const std::vector<Tensor>& xs);

// Irregular doubles in [low, high], the same in each run; calls in one test
// case give different ones.
Tensor values(const Dims& shape, double low = -1, double high = 1);

}  // namespace tagflow::autodiff::testing
