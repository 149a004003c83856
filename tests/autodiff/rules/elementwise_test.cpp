#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "autodiff/jvp.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;
using graph::Output;

namespace {

void check_function(const char* op, double low, double high,
                    int line = __builtin_LINE()) {
  check_gradients(op_of(op), {values({2, 3}, low, high)}, {}, line);
}

void check_complex_function(const char* op, int line = __builtin_LINE()) {
  check_gradients(op_of(op), {complex_values({3}, 0.2, 0.8)}, {}, line);
}

}  // namespace

TEST_CASE("functions of one number have their derivatives") {
  check_function("Neg", -1, 1);
  check_function("Abs", 0.2, 1);
  check_function("Abs", -1, -0.2);
  check_function("Sign", 0.2, 1);
  check_function("Square", -1, 1);
  check_function("Sqrt", 0.5, 2);
  check_function("Rsqrt", 0.5, 2);
  check_function("Reciprocal", 0.5, 2);
  check_function("Inv", -2, -0.5);
  check_function("Exp", -2, 2);
  check_function("Expm1", -2, 2);
  check_function("Log", 0.5, 3);
  check_function("Log1p", -0.5, 2);
}

TEST_CASE("trigonometric and hyperbolic functions have their derivatives") {
  check_function("Sin", -3, 3);
  check_function("Cos", -3, 3);
  check_function("Tan", -1.2, 1.2);
  check_function("Asin", -0.8, 0.8);
  check_function("Acos", -0.8, 0.8);
  check_function("Atan", -3, 3);
  check_function("Sinh", -2, 2);
  check_function("Cosh", -2, 2);
  check_function("Asinh", -3, 3);
  check_function("Acosh", 1.3, 3);
  check_function("Atanh", -0.8, 0.8);
}

TEST_CASE("derivatives of complex functions are conjugated") {
  for (const char* op :
       {"Neg",  "Sign",  "Square", "Sqrt", "Rsqrt", "Reciprocal",
        "Inv",  "Exp",   "Expm1",  "Log",  "Log1p", "Sin",
        "Cos",  "Tan",   "Asin",   "Acos", "Atan",  "Sinh",
        "Cosh", "Asinh", "Acosh",  "Atanh"}) {
    CAPTURE(op);
    check_complex_function(op);
  }
}

TEST_CASE("Sigmoid and Tanh of complex numbers have gradients") {
  check_gradients(op_of("Sigmoid"), {complex_values({4})});
  check_gradients(op_of("Tanh"), {complex_values({4})});
}

TEST_CASE("casts hand the gradient back in the type that came in") {
  const auto there_and_back = [](DataType there) -> Function {
    return [there](const graph::Scope& s, const graph::Outputs& x) {
      return ops::cast(s, ops::cast(s, ops::mul(s, x[0], x[0]), there),
                       x[0].dtype());
    };
  };
  check_gradients(there_and_back(DataType::kComplex128), {values({2, 3})});
  check_gradients(there_and_back(DataType::kDouble), {complex_values({3})});
  const auto grads =
      gradients_of(there_and_back(DataType::kInt32), {values({2})});
  CHECK(identical(grads[0], Tensor::vector<double>({0, 0})));
  const auto narrow = gradients_of(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return ops::cast(s, x[0], DataType::kDouble);
      },
      {Tensor::vector<float>({1, 2})});
  CHECK(identical(narrow[0], Tensor::vector<float>({1, 1})));
}

TEST_CASE("the derivative of |x| at 0 is 0") {
  const auto grads =
      gradients_of(op_of("Abs"), {Tensor::vector<double>({-2, 0, 3})});
  CHECK(identical(grads[0], Tensor::vector<double>({-1, 0, 1})));
}

TEST_CASE("the derivative of expm1 has digits where its result is -1") {
  const auto grads =
      gradients_of(op_of("Expm1"), {Tensor::vector<double>({-50})});
  CHECK(*grads[0].data<double>() == doctest::Approx(std::exp(-50.0)));
}

TEST_CASE("a gradient of 0 stays 0 at singular points, to second order") {
  // 0 where x is 0, else f(x).
  const auto guarded = [](const char* op) -> Function {
    return [op](const graph::Scope& s, const graph::Outputs& x) {
      return graph::Outputs(ops::select(s, ops::greater(s, x[0], 0),
                                        Output(s.op(op, {x[0]})), 0));
    };
  };
  for (const char* op : {"Sqrt", "Rsqrt", "Reciprocal", "Inv"}) {
    CAPTURE(op);
    const auto grads =
        gradients_of(guarded(op), {Tensor::vector<double>({0, 1})});
    CHECK(grads[0].data<double>()[0] == 0);
    CHECK(grads[0].data<double>()[1] == (op == std::string("Sqrt")    ? 0.5
                                         : op == std::string("Rsqrt") ? -0.5
                                                                      : -1));
    graph::Graph graph;
    const graph::Scope s(graph);
    const Output x = ops::placeholder(s, DataType::kDouble, Shape{2});
    Output y = guarded(op)(s, {x})[0];
    const Output tangent = jvp(s, {y}, {x}, {ops::ones_like(s, x)})[0];
    for (int order = 0; order < 2; ++order) y = dense_gradients(s, {y}, {x})[0];
    const auto results =
        evaluate(s, {y, tangent}, {{x.name(), Tensor::vector<double>({0, 1})}});
    CHECK(results[0].data<double>()[0] == 0);
    CHECK(results[1].data<double>()[0] == 0);
  }
}
