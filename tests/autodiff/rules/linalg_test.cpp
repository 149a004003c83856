// Linear algebra.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
using graph::Outputs;
using graph::Scope;
namespace ops = tagflow::graph::ops;

namespace {

// x + 3 on the diagonal: far from singular.
graph::Output regular(const Scope& s, const graph::Output& x) {
  const graph::Output ones =
      s.op("MatrixBandPart", {ops::ones_like(s, x), 0, 0});
  return ops::add(s, x, ops::mul(s, ones, 3));
}

// The op of regular(x[0]) and the other xs.
Function of_regular(std::string op, AttrMap attrs = {}) {
  return [=](const Scope& s, const Outputs& x) {
    graph::Inputs inputs = {regular(s, x[0])};
    for (size_t i = 1; i < x.size(); ++i) inputs.add(x[i]);
    return ops::all_outputs(s.op(op, inputs, attrs));
  };
}

// The op of a positive definite matrix.
Function of_positive(std::string op, AttrMap attrs = {}) {
  return [=](const Scope& s, const Outputs& x) {
    const graph::Output square =
        ops::batch_matmul(s, x[0], x[0], {.adj_y = true});
    return ops::all_outputs(s.op(op, {regular(s, square)}, attrs));
  };
}

// A decomposition, each output times its conjugate: what does not depend on the
// signs of columns, or the phases of complex ones.
Function sizes(std::string op, AttrMap attrs = {}) {
  return [=](const Scope& s, const Outputs& x) {
    Outputs results;
    for (const graph::Output& y : ops::all_outputs(s.op(op, x, attrs)))
      results.push_back(is_complex(y.dtype())
                            ? ops::mul(s, y, s.op("Conj", {y}))
                            : ops::square(s, y));
    return results;
  };
}

}  // namespace

TEST_CASE("MatrixInverse has gradients") {
  for (bool adjoint : {false, true}) {
    const Function f = of_regular("MatrixInverse", {{"adjoint", adjoint}});
    check_gradients(f, {values({2, 3, 3})});
    check_gradients(f, {complex_values({2, 2})});
  }
}

TEST_CASE("MatrixDeterminant has gradients") {
  check_gradients(op_of("MatrixDeterminant"), {values({2, 3, 3})});
  check_gradients(op_of("MatrixDeterminant"), {complex_values({3, 3})});
}

TEST_CASE("LogMatrixDeterminant has gradients, of its sign where it turns") {
  check_gradients(of_regular("LogMatrixDeterminant"), {values({2, 3, 3})});
  check_gradients(of_regular("LogMatrixDeterminant"), {complex_values({2, 2})});
  check_gradients(op_of("LogMatrixDeterminant"), {complex_values({2, 2})});
}

TEST_CASE("MatrixSolve has gradients") {
  for (bool adjoint : {false, true}) {
    const Function f = of_regular("MatrixSolve", {{"adjoint", adjoint}});
    check_gradients(f, {values({2, 3, 3}), values({2, 3, 2})});
    check_gradients(f, {complex_values({2, 2}), complex_values({2, 1})});
  }
}

TEST_CASE("MatrixTriangularSolve has gradients") {
  for (bool lower : {false, true}) {
    for (bool adjoint : {false, true}) {
      const Function f = of_regular("MatrixTriangularSolve",
                                    {{"lower", lower}, {"adjoint", adjoint}});
      check_gradients(f, {values({3, 3}), values({3, 2})});
      check_gradients(f, {complex_values({2, 2}), complex_values({2, 2})});
      check_gradients(f, {values({2, 2, 2}), values({2, 2, 1})});
    }
  }
}

TEST_CASE("gradients of triangular systems are summed over repeated batches") {
  const Function f = of_regular("MatrixTriangularSolve");
  check_gradients(f, {values({2, 2}), values({3, 2, 1})});
  check_gradients(f, {values({3, 2, 2}), values({2, 2})});
  check_gradients(f, {values({2, 1, 2, 2}), values({3, 2, 1})});
}

TEST_CASE("Cholesky has gradients") {
  check_gradients(of_positive("Cholesky"), {values({3, 3})}, {.order = 3});
  check_gradients(of_positive("Cholesky"), {values({2, 2, 2})});
  check_gradients(of_positive("Cholesky"), {complex_values({3, 3})});
}

TEST_CASE("CholeskyGrad has gradients") {
  check_gradients(of_regular("CholeskyGrad"), {values({3, 3}), values({3, 3})});
  check_gradients(of_regular("CholeskyGrad"),
                  {values({2, 2, 2}), values({2, 2, 2})});
}

TEST_CASE("Lu has gradients") {
  const Function f = [](const Scope& s, const Outputs& x) {
    return Outputs(s.op("Lu", x));
  };
  check_gradients(f, {values({3, 3})});
  check_gradients(f, {values({2, 2, 2})});
  check_gradients(f, {complex_values({3, 3})});
  // Its rows change places.
  check_gradients(f, {Tensor::of<double>({2, 2}, {0.1, 2, 3, 0.7})});
}

TEST_CASE("Qr has gradients for matrices of any form") {
  for (const Dims& shape : {Dims{3, 3}, Dims{4, 2}, Dims{2, 4}, Dims{2, 3, 2}})
    check_gradients(sizes("Qr"), {values(shape)});
  check_gradients(op_of("Qr"), {values({3, 2})});
  check_gradients(of_regular("Qr"), {complex_values({2, 2})});
  check_gradients(sizes("Qr"), {complex_values({3, 2})});
  check_gradients(sizes("Qr"), {complex_values({2, 3})});
}

TEST_CASE("Qr with full matrices has gradients if q is unique") {
  const CheckOptions known = {.unknown_shapes = false};
  const AttrMap full = {{"full_matrices", true}};
  check_gradients(sizes("Qr", full), {values({3, 3})}, known);
  check_gradients(sizes("Qr", full), {values({2, 3})}, known);
  const auto wrong =
      wrong_gradients(sizes("Qr", full), {values({3, 2})}, known);
  CHECK(wrong.status().to_string().find("q is not unique") !=
        std::string::npos);
}

TEST_CASE("SelfAdjointEigV2 has gradients, of the lower triangle") {
  for (bool has_vectors : {true, false}) {
    const Function f = [has_vectors, f = sizes("SelfAdjointEigV2",
                                               {{"compute_v", has_vectors}})](
                           const Scope& s, const Outputs& x) {
      const Outputs all = f(s, x);
      return has_vectors ? all : Outputs(all[0]);
    };
    check_gradients(f, {values({3, 3})});
    check_gradients(f, {values({2, 2, 2})});
    check_gradients(f, {complex_values({3, 3})});
  }
}

TEST_CASE("equal eigenvalues do not make infinities") {
  const Function f = [](const Scope& s, const Outputs& x) {
    return Outputs(s.op("SelfAdjointEigV2", x));
  };
  const Tensor one = Tensor::of<double>({2, 2}, {1, 0, 0, 1});
  CHECK(identical(gradients_of(f, {one})[0], one));
}

TEST_CASE("Svd has gradients for matrices of any form") {
  for (const Dims& shape : {Dims{2, 2}, Dims{3, 2}, Dims{2, 4}, Dims{2, 3, 2}})
    check_gradients(sizes("Svd"), {values(shape)});
  for (const Dims& shape : {Dims{2, 2}, Dims{3, 2}, Dims{2, 3}})
    check_gradients(sizes("Svd"), {complex_values(shape)});
}

TEST_CASE("Svd with full matrices has gradients") {
  for (const Dims& shape : {Dims{2, 2}, Dims{3, 2}, Dims{2, 3}})
    check_gradients(sizes("Svd", {{"full_matrices", true}}), {values(shape)});
}

TEST_CASE("singular vectors that turn together have gradients") {
  const Function f = [](const Scope& s, const Outputs& x) {
    const graph::OpResult svd = s.op("Svd", x);
    return Outputs(ops::batch_matmul(s, svd[1], svd[2], {.adj_y = true}));
  };
  check_gradients(f, {values({3, 2})});
  check_gradients(f, {complex_values({2, 2})});
}

TEST_CASE("singular values alone have gradients") {
  const Function f = [](const Scope& s, const Outputs& x) {
    return Outputs(s.op("Svd", x, {{"compute_uv", false}}));
  };
  check_gradients(f, {values({3, 2})});
  check_gradients(f, {values({2, 2, 2})});
  check_gradients(f, {complex_values({2, 3})});
}

TEST_CASE("Cross has gradients") {
  check_gradients(op_of("Cross"), {values({2, 3}), values({2, 3})});
}
