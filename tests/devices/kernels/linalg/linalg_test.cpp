// Linear algebra, compared with TensorFlow's results and errors; decompositions
// that are not unique are checked by their properties.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

Tensor matrix(int64_t rows, std::initializer_list<float> values) {
  return Tensor::of<float>({rows, int64_t(values.size()) / rows}, values);
}

// a b, or a b^T.
Tensor product(const Tensor& a, const Tensor& b, bool transposed = false) {
  const auto c = run_op("MatMul", {a, b}, {{"transpose_b", transposed}});
  REQUIRE_MESSAGE(c.ok(), c.status().to_string());
  return (*c)[0];
}

// A matrix whose columns are multiplied by the elements of a vector.
Tensor scaled(const Tensor& a, const Tensor& factors) {
  const auto c = run_op("Mul", {a, factors});
  REQUIRE_MESSAGE(c.ok(), c.status().to_string());
  return (*c)[0];
}

}  // namespace

TEST_CASE("linear algebra computes and refuses what TensorFlow's does") {
  const RecordedCounts counts = check_recorded_cases("linalg.txt", 5e-3);
  CHECK(counts.ops.size() == 10);
  CHECK(counts.refused > 40);
}

TEST_CASE("an eigendecomposition gives back its matrix") {
  // Above the diagonal there is nothing to be read.
  const Tensor a = matrix(3, {2, 9, 9, -1, 3, 9, 0.5f, 1, -4});
  const Tensor symmetric = matrix(3, {2, -1, 0.5f, -1, 3, 1, 0.5f, 1, -4});
  const auto eigen = run_op("SelfAdjointEigV2", {a});
  REQUIRE_MESSAGE(eigen.ok(), eigen.status().to_string());
  const Tensor &e = (*eigen)[0], &v = (*eigen)[1];
  CHECK(e.data<float>()[0] <= e.data<float>()[1]);
  CHECK(e.data<float>()[1] <= e.data<float>()[2]);
  expect_close(product(scaled(v, e), v, true), symmetric, 1e-5);
  const auto values = run_op("SelfAdjointEigV2", {a}, {{"compute_v", false}});
  expect_close(values, e, 1e-5);
  CHECK((*values)[1].shape() == Shape{0});
  const float nan = std::nanf("");
  expect_error(run_op("SelfAdjointEigV2", {matrix(2, {nan, 0, 0, 1})}),
               kInvalid, "matrix 0 has no self-adjoint eigendecomposition");
}

TEST_CASE("singular values and vectors give back their matrix") {
  const Tensor a = matrix(3, {1, 2, 2, 4, 3, 5});
  for (const bool full : {false, true}) {
    const auto svd = run_op("Svd", {a}, {{"full_matrices", full}});
    REQUIRE_MESSAGE(svd.ok(), svd.status().to_string());
    const Tensor& s = (*svd)[0];
    const Tensor& v = (*svd)[2];
    expect_close(s, Tensor::vector<float>({7.675619f, 0.291321f}), 1e-5);
    CHECK((*svd)[1].shape() == Shape{3, full ? 3 : 2});
    if (!full) expect_close(product(scaled((*svd)[1], s), v, true), a, 1e-5);
    expect_close(product(v, v, true), matrix(2, {1, 0, 0, 1}), 1e-5);
  }
  const auto values = run_op("Svd", {a}, {{"compute_uv", false}});
  REQUIRE_MESSAGE(values.ok(), values.status().to_string());
  CHECK((*values)[1].shape() == Shape{0});
  const float nan = std::nanf("");
  expect_close(run_op("Svd", {matrix(2, {nan, 0, 0, 1})}),
               Tensor::vector<float>({nan, nan}));
  const auto none = run_op("Svd", {Tensor::make(DataType::kFloat, {2, 0})},
                           {{"full_matrices", true}});
  REQUIRE_MESSAGE(none.ok(), none.status().to_string());
  expect_close((*none)[1], matrix(2, {1, 0, 0, 1}));
}

TEST_CASE("Svd and Qr take any number of empty matrices") {
  const Tensor empty = Tensor::make(DataType::kFloat, {int64_t{1} << 40, 2, 0});
  for (const char* op : {"Svd", "Qr"}) {
    const auto made = run_op(op, {empty});
    CHECK_MESSAGE(made.ok(), made.status().to_string());
  }
}

TEST_CASE("Cholesky gives NaN for a matrix without a factor, as TensorFlow") {
  const float nan = std::nanf("");
  expect_close(run_op("Cholesky", {matrix(2, {1, 2, 2, 1})}),
               matrix(2, {nan, 0, nan, nan}));
}

TEST_CASE("matrices that cannot be worked on are refused in words") {
  const Tensor vector = Tensor::vector<float>({1, 2});
  const Tensor flat = matrix(1, {1, 2});
  const Tensor singular =
      Tensor::of<float>({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4});
  for (const char* op : {"Cholesky", "MatrixInverse", "MatrixDeterminant"}) {
    expect_error(run_op(op, {vector}), kInvalid, "fewer than two dimensions");
    expect_error(run_op(op, {flat}), kInvalid, "matrices are not square");
  }
  expect_error(run_op("MatrixInverse", {singular}), kInvalid,
               "matrix 1 is not invertible");
  expect_error(run_op("Lu", {singular}), kInvalid,
               "matrix 1 is not invertible");
  expect_error(run_op("MatrixSolve", {singular, singular}), kInvalid,
               "matrix 1 is not invertible");
  expect_error(run_op("MatrixSolve", {matrix(2, {1, 0, 0, 1}), flat}), kInvalid,
               "do not fit");
  expect_error(run_op("MatrixTriangularSolve",
                      {Tensor::make(DataType::kFloat, {2, 1, 1}),
                       Tensor::make(DataType::kFloat, {3, 1, 1})}),
               kInvalid, "the batches of");
  expect_error(run_op("CholeskyGrad", {matrix(1, {1}), flat}), kInvalid,
               "differ in shape");
  expect_error(run_op("Cross", {vector, vector}), Code::kFailedPrecondition,
               "does not consist of vectors of 3 elements");
}

}  // namespace tagflow::devices
