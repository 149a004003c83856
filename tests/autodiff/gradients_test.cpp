#include "autodiff/gradients.h"

#include <doctest/doctest.h>

#include "tests/autodiff/evaluate.h"

using namespace tagflow;                     // NOLINT: tests
using namespace tagflow::autodiff;           // NOLINT
using namespace tagflow::autodiff::testing;  // NOLINT
using graph::Graph;
using graph::Output;
using graph::Scope;
namespace ops = graph::ops;

TEST_CASE("the gradient of a y of known shape does not read the y") {
  for (const DataType dtype :
       {DataType::kHalf, DataType::kBFloat16, DataType::kFloat,
        DataType::kDouble, DataType::kComplex64, DataType::kComplex128})
    for (const auto& shape :
         {PartialShape::scalar(), PartialShape({2, 3}), PartialShape({0})}) {
      Graph graph;
      const Scope s(graph);
      // Nobody feeds it.
      const Output x = ops::placeholder(s, dtype, shape);
      const Output y = ops::mul(s, x, ops::cast(s, 5.0, dtype));
      const Output grad = dense_gradients(s, {y}, {x})[0];
      REQUIRE(s.ok());
      CHECK(grad.dtype() == dtype);
      const Tensor made =
          evaluate(s, {ops::cast(s, grad, DataType::kDouble)})[0];
      CHECK(PartialShape(made.shape()) == shape);
      for (int64_t i = 0; i < made.num_elements(); ++i)
        CHECK(made.data<double>()[size_t(i)] == 5);
    }
}

TEST_CASE("the gradient of a y of unknown shape has the shape of a run") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s, DataType::kDouble, PartialShape({-1}));
  const Output grad = dense_gradients(s, {ops::mul(s, x, 5.0)}, {x})[0];
  const Tensor made =
      evaluate(s, {grad}, {{x.name(), Tensor::of<double>({2}, {1, 2})}})[0];
  REQUIRE(made.num_elements() == 2);
  CHECK(made.data<double>()[1] == 5);
}

TEST_CASE(
    "the gradient of a y of known shape in a branch is as live as the y") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::constant(s, 3.0);
  const Output p = ops::placeholder(s, DataType::kBool, PartialShape::scalar());
  const Output taken = ops::switch_(s, x, p).on_true;
  const GradientOptions options = {.check_liveness = true};
  for (const Output& y : {taken, ops::square(s, taken)}) {
    CHECK(dense_gradients(s, {y}, {taken}, options)[0].valid());
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  }
}
