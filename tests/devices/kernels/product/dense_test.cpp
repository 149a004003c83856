// MatMul and BatchMatMul against sums written out in double.
#include <doctest/doctest.h>

#include <complex>

#include "devices/kernels/product/gemm.h"
#include "graph/dtype_visit.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

// Small numbers, some negative if the type has them, that no product of
// the sizes used here rounds or overflows in.
template <class T>
Tensor numbers(const Shape& shape, int seed) {
  Tensor tensor = Tensor::make(kDataTypeOf<T>, shape);
  int i = seed;
  for (T& value : tensor.mutable_flat<T>()) {
    const int number = (i++ * 7) % 5;
    if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>)
      value = T(float(number - 2), float((i * 3) % 4 - 1));
    else
      value = T(std::is_unsigned_v<T> ? number : number - 2);
  }
  return tensor;
}

Complex128 wide(const auto& value) {
  if constexpr (
      requires { value.imag(); } && requires { value.real(); } &&
      sizeof(value) >= 8)
    return {double(value.real()), double(value.imag())};
  else
    return {double(value), 0};
}

// The product of two matrices as the definition has it.
template <class T>
Tensor product(const Tensor& a, bool transpose_a, const Tensor& b,
               bool transpose_b) {
  const int64_t m = a.dim(transpose_a), k = a.dim(!transpose_a);
  const int64_t n = b.dim(!transpose_b);
  Tensor out = Tensor::make(kDataTypeOf<T>, {m, n});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      Complex128 sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += wide(a.data<T>()[transpose_a ? l * m + i : i * k + l]) *
               wide(b.data<T>()[transpose_b ? j * k + l : l * n + j]);
      T& to = out.mutable_data<T>()[i * n + j];
      if constexpr (std::is_same_v<T, Complex64> ||
                    std::is_same_v<T, Complex128>)
        to = T(sum);
      else
        to = T(sum.real());
    }
  return out;
}

template <class T>
void check_matmul(int64_t m, int64_t n, int64_t k) {
  for (bool transpose_a : {false, true})
    for (bool transpose_b : {false, true}) {
      INFO(dtype_name(kDataTypeOf<T>), " ", m, " ", n, " ", k, " ", transpose_a,
           " ", transpose_b);
      const Tensor a = numbers<T>(transpose_a ? Shape{k, m} : Shape{m, k}, 1);
      const Tensor b = numbers<T>(transpose_b ? Shape{n, k} : Shape{k, n}, 3);
      expect_close(
          run_op("MatMul", {a, b},
                 {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}),
          product<T>(a, transpose_a, b, transpose_b));
    }
}

TEST_CASE("a matrix product equals its definition for every type") {
  visit_numeric(DataType::kFloat, [](auto) {});
  for (DataType dtype :
       {DataType::kFloat, DataType::kDouble, DataType::kHalf,
        DataType::kBFloat16, DataType::kInt32, DataType::kInt64,
        DataType::kUInt8, DataType::kUInt16, DataType::kUInt32,
        DataType::kUInt64, DataType::kComplex64, DataType::kComplex128})
    visit_numeric(dtype, [&]<class T>(TypeTag<T>) {
      check_matmul<T>(2, 3, 4);
      check_matmul<T>(1, 1, 1);
    });
}

TEST_CASE("large products agree with small ones, whoever computes them") {
  // Each size takes another path: a loop, Eigen, the back end, vectors.
  for (auto [m, n, k] : {std::array{8, 8, 8}, std::array{20, 31, 17},
                         std::array{130, 70, 90}, std::array{70, 150, 33},
                         std::array{1, 200, 300}, std::array{300, 1, 200},
                         std::array{65, 64, 1}, std::array{32, 70, 300}}) {
    check_matmul<float>(m, n, k);
    check_matmul<double>(m, n, k);
    check_matmul<Complex64>(m, n, k);
  }
  check_matmul<int32_t>(65, 70, 20);
  check_matmul<BFloat16>(65, 70, 3);
}

TEST_CASE("a product over no elements is zero, of no rows is empty") {
  const auto zeros = [](const Shape& shape) {
    Tensor tensor = Tensor::make(DataType::kFloat, shape);
    for (float& value : tensor.mutable_flat<float>()) value = 0;
    return tensor;
  };
  expect_close(run_op("MatMul", {zeros({2, 0}), zeros({0, 3})}), zeros({2, 3}));
  expect_close(run_op("MatMul", {zeros({0, 2}), zeros({2, 3})}), zeros({0, 3}));
  expect_close(run_op("BatchMatMulV2", {zeros({0, 1, 4}), zeros({1, 4, 1})}),
               zeros({0, 1, 1}));
  expect_close(run_op("BatchMatMulV2", {zeros({2, 1, 0}), zeros({0, 2})}),
               zeros({2, 1, 2}));
}

TEST_CASE("products of shapes that do not fit are refused") {
  const auto ones = [](const Shape& shape) { return numbers<float>(shape, 0); };
  expect_error(run_op("MatMul", {ones({2, 3}), ones({2, 3})}),
               Code::kInvalidArgument, "float[2,3] and float[2,3] differ");
  expect_error(
      run_op("MatMul", {ones({2, 3}), ones({3, 2})}, {{"transpose_a", true}}),
      Code::kInvalidArgument, "(transposed)");
  expect_error(run_op("MatMul", {ones({3}), ones({3, 2})}),
               Code::kInvalidArgument, "float[3], not a matrix");
  expect_error(run_op("BatchMatMul", {ones({1, 2, 3}), ones({2, 3, 2})}),
               Code::kInvalidArgument, "batch dimensions");
  expect_error(run_op("BatchMatMul", {ones({2, 3}), ones({2, 3, 2})}),
               Code::kInvalidArgument, "ranks");
  expect_error(run_op("BatchMatMulV2", {ones({2, 2, 3}), ones({3, 3, 2})}),
               Code::kInvalidArgument, "batch dimensions");
  expect_error(run_op("BatchMatMulV2", {ones({4}), ones({4, 2})}),
               Code::kInvalidArgument, "two dimensions");
}

TEST_CASE("integer products wrap around") {
  const Tensor big = Tensor::of<int32_t>({1, 1}, {65536});
  expect_close(run_op("MatMul", {big, big}), Tensor::of<int32_t>({1, 1}, {0}));
  const Tensor shorts = Tensor::of<uint16_t>({1, 1}, {65535});
  expect_close(run_op("MatMul", {shorts, shorts}),
               Tensor::of<uint16_t>({1, 1}, {1}));
}

// Matrix i of a batch.
template <class T>
Tensor matrix(const Tensor& batch, int64_t i) {
  const Shape shape{batch.dim(batch.rank() - 2), batch.dim(batch.rank() - 1)};
  const int64_t size = shape.num_elements();
  return Tensor::of<T>(shape,
                       batch.flat<T>().subspan(size_t(i * size), size_t(size)));
}

TEST_CASE("BatchMatMulV2 broadcasts batches, innermost dimension first") {
  const Tensor a = numbers<float>({3, 1, 2, 4}, 0);
  const Tensor b = numbers<float>({2, 4, 5}, 2);
  const auto out = run_op("BatchMatMulV2", {a, b});
  REQUIRE(out.ok());
  REQUIRE((*out)[0].shape() == Shape{3, 2, 2, 5});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j)
      expect_close(matrix<float>((*out)[0], i * 2 + j),
                   product<float>(matrix<float>(a, i), false,
                                  matrix<float>(b, j), false));
}

TEST_CASE("an adjoint factor is transposed and conjugated") {
  const Tensor a = Tensor::of<Complex64>({1, 1, 2}, {{1, 2}, {3, -1}});
  const Tensor b = Tensor::of<Complex64>({1, 1, 1}, {{0, 1}});
  expect_close(run_op("BatchMatMul", {a, b}, {{"adj_x", true}}),
               Tensor::of<Complex64>({1, 2, 1}, {{2, 1}, {-1, 3}}));
  const Tensor c = Tensor::of<Complex64>({1, 1, 1}, {{1, 0}});
  expect_close(run_op("BatchMatMulV3", {c, a.reshaped({1, 2, 1}).value()},
                      {{"adj_y", true}, {"Tout", DataType::kComplex64}}),
               Tensor::of<Complex64>({1, 1, 2}, {{1, -2}, {3, 1}}));
}

TEST_CASE("bytes multiply into int32") {
  const Tensor a = Tensor::of<int8_t>({1, 2}, {-128, 127});
  const Tensor b = Tensor::of<uint8_t>({2, 1}, {255, 255});
  expect_close(run_op("BatchMatMulV3", {a, b}, {{"Tout", DataType::kInt32}}),
               Tensor::of<int32_t>({1, 1}, {-255}));
}

TEST_CASE("gemm leaves what lies between its rows as it is") {
  // Some columns of a product by a transposed matrix, as a worker does them.
  constexpr int64_t kRows = 16, kColumns = 30, kInner = 256, kStride = 70;
  const std::vector<float> a(kRows * kInner, 0.5f);
  std::vector<float> b(kColumns * kInner);
  for (size_t i = 0; i < b.size(); ++i) b[i] = float(i / kInner);
  std::vector<float> c(kRows * kStride, -1.0f);
  for (int round = 0; round < 2; ++round)
    gemm<float>(kRows, kColumns, kInner, {a.data(), kInner, false},
                {b.data(), kInner, true}, c.data() + 20, kStride);
  for (int64_t i = 0; i < kRows * kStride; ++i) {
    const int64_t column = i % kStride - 20;
    const bool is_inside = column >= 0 && column < kColumns;
    REQUIRE(c[size_t(i)] == (is_inside ? 128.0f * float(column) : -1.0f));
  }
}

TEST_CASE("gemm adds to what is there where it is told to") {
  for (int64_t size : {4, 20, 64}) {
    const Tensor a = numbers<float>({size, size}, 1);
    const Tensor expected = product<float>(a, false, a, true);
    std::vector<float> sum(size_t(size * size), 1.0f);
    gemm<float>(size, size, size, {a.data<float>(), size},
                {a.data<float>(), size, true}, sum.data(), size, true);
    for (int64_t i = 0; i < size * size; ++i)
      REQUIRE(sum[size_t(i)] == expected.data<float>()[i] + 1);
  }
}

TEST_CASE("the cost of a product grows with its work") {
  const double tiny = gemm_cost(DataType::kFloat, 2, 2, 2);
  const double large = gemm_cost(DataType::kFloat, 256, 256, 256);
  CHECK(tiny < 500);
  CHECK(large > 100'000);
  CHECK(gemm_cost(DataType::kInt64, 256, 256, 256) > large);
}

}  // namespace
}  // namespace tagflow::devices
