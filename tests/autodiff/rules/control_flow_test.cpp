// Rules of ops that hand values on or check them.
#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

TEST_CASE("ops that pass their input on have its gradient") {
  for (const char* op : {"Identity", "Snapshot", "GuaranteeConst"})
    check_squares(op_of(op), {values({2, 3})});
  check_squares(op_with("Print", {1.5}, {{"first_n", 0}}), {values({2})});
  check_squares(op_of("EnsureShape", {{"shape", PartialShape({-1, 3})}}),
                {values({2, 3})});
  check_squares(op_of("PlaceholderWithDefault", {{"shape", PartialShape()}}),
                {values({3})});
  check_squares(outputs_of("IdentityN", 0, {}, {0, 1}),
                {values({2}), values({})});
}

TEST_CASE("PreventGradient fails with its message") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output x = ops::placeholder(s, DataType::kDouble, {2});
  const std::string error =
      error_of_gradient(s, ops::prevent_gradient(s, x, "not this way"), x);
  CHECK(says(error, "[PreventGradient]"));
  CHECK(says(error, "not this way"));
}

TEST_CASE("a check of numbers checks their gradient, too") {
  check_gradients(op_of("CheckNumerics", {{"message", "x"}}), {values({3})});
  check_gradients(op_of("CheckNumericsV2", {{"message", "x"}}), {values({3})});
}

TEST_CASE("a variable that was not selected has a gradient of zeros") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output a = ops::reference_variable(s, DataType::kDouble, {2});
  const Output b = ops::reference_variable(s, DataType::kDouble, {2});
  const Output init =
      ops::group(s, {ops::assign(s, a, {1., 2.}), ops::assign(s, b, {3., 4.})});
  const Output y = ops::square(s, s.op("RefSelect", {1, a, b}));
  const auto results =
      evaluate(s, dense_gradients(s, {y}, {a, b}), {}, {}, init);
  CHECK(identical(results[0], Tensor::vector<double>({0, 0})));
  CHECK(identical(results[1], Tensor::vector<double>({6, 8})));
}
