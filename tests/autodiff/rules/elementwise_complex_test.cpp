#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

TEST_CASE("parts of complex numbers have gradients") {
  const AttrMap real = {{"Tout", DataType::kDouble}};
  for (const char* op : {"Real", "Imag", "ComplexAbs", "Angle"}) {
    CAPTURE(op);
    check_gradients(op_of(op, real), {complex_values({2, 3})});
  }
}

TEST_CASE("complex numbers hand their gradients to their parts") {
  const AttrMap complex = {{"Tout", DataType::kComplex128}};
  check_gradients(op_of("Complex", complex), {values({2, 3}), values({2, 3})});
  check_gradients(op_of("Complex", complex), {values({2, 3}), values({3})});
}

TEST_CASE("the gradient of a conjugate is conjugated") {
  check_gradients(op_of("Conj"), {complex_values({2, 3})});
}

TEST_CASE("parts of functions that are not linear have gradients") {
  check_gradients(
      [](const graph::Scope& s, const graph::Outputs& x) {
        const AttrMap real = {{"Tout", DataType::kDouble}};
        const Output square = ops::square(s, x[0]);
        return graph::Outputs{s.op("Real", {square}, real),
                              s.op("Imag", {ops::exp(s, x[0])}, real)};
      },
      {complex_values({3})});
}

TEST_CASE("the gradient of the absolute value at 0 is 0") {
  const auto grads =
      gradients_of(op_of("ComplexAbs", {{"Tout", DataType::kDouble}}),
                   {Tensor::vector<Complex128>({{0, 0}, {3, 4}})});
  CHECK(grads[0].data<Complex128>()[0] == Complex128(0, 0));
  CHECK(grads[0].data<Complex128>()[1].real() == doctest::Approx(0.6));
  CHECK(grads[0].data<Complex128>()[1].imag() == doctest::Approx(0.8));
}
