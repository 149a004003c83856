// Functions and values for tests of rules.
#pragma once

#include <complex>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/gradient_check.h"

namespace tagflow::autodiff::testing {

// The first output of the op of all xs.
inline Function op_of(std::string op, AttrMap attrs = {}) {
  return [=](const graph::Scope& s, const graph::Outputs& x) {
    return graph::Outputs(s.op(op, x, attrs));
  };
}

// Of the op of all xs and further inputs.
inline Function op_with(std::string op, std::vector<graph::Input> more,
                        AttrMap attrs = {}) {
  return [=](const graph::Scope& s, const graph::Outputs& x) {
    graph::Inputs inputs = x;
    for (const graph::Input& input : more) inputs.add(input);
    return graph::Outputs(s.op(op, inputs, attrs));
  };
}

// f(f(f(x))) by a loop, of an f with one x and a result of x's shape.
inline Function repeated(Function f) {
  return [=](const graph::Scope& s, const graph::Outputs& x) {
    const graph::Outputs last = graph::while_loop(
        s,
        [](const graph::Scope& in, const graph::Outputs& v) {
          return graph::ops::less(in, v[0], 3);
        },
        [&](const graph::Scope& in, const graph::Outputs& v) {
          return graph::Outputs{graph::ops::add(in, v[0], 1), f(in, v[1])[0]};
        },
        {0, x[0]});
    return graph::Outputs(last[1]);
  };
}

// The message with which the gradient of y by x fails.
inline std::string error_of_gradient(const graph::Scope& s,
                                     const graph::Output& y,
                                     const graph::Output& x) {
  gradients(s, {y}, {x});
  return s.status().to_string();
}

inline bool says(const std::string& message, std::string_view words) {
  return message.find(words) != message.npos;
}

// Irregular numbers whose parts are in [low, high].
inline Tensor complex_values(const Dims& shape, double low = -1,
                             double high = 1) {
  const Tensor real = values(shape, low, high), imag = values(shape, low, high);
  Tensor result = Tensor::make(DataType::kComplex128, shape);
  for (int64_t i = 0; i < result.num_elements(); ++i)
    result.mutable_data<Complex128>()[i] = {real.data<double>()[i],
                                            imag.data<double>()[i]};
  return result;
}

}  // namespace tagflow::autodiff::testing
