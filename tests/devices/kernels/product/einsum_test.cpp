// Einsum; values are TensorFlow's.
#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

Tensor counting(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  float next = 0;
  for (float& value : tensor.mutable_flat<float>()) value = next++;
  return tensor;
}

Result<Outputs> einsum(const char* equation, const std::vector<Tensor>& in) {
  return run_op("Einsum", in, {{"equation", equation}});
}

const Tensor kA = counting({2, 3});
const Tensor kB = counting({3, 4});
const Tensor kCube = counting({2, 2, 2});

TEST_CASE("Einsum transposes or sums one operand, or takes its diagonal") {
  expect_close(einsum("ij->ji", {kA}),
               Tensor::of<float>({3, 2}, {0, 3, 1, 4, 2, 5}));
  expect_close(einsum("ij->i", {kA}), Tensor::vector<float>({3, 12}));
  expect_close(einsum("ij->", {kA}), Tensor::scalar(15.0f));
  expect_close(einsum("ij->ij", {kA}), kA);
  const Tensor square = counting({3, 3});
  expect_close(einsum("ii->i", {square}), Tensor::vector<float>({0, 4, 8}));
  expect_close(einsum("ii->", {square}), Tensor::scalar(12.0f));
  expect_close(einsum("iij->ij", {kCube}),
               Tensor::of<float>({2, 2}, {0, 1, 6, 7}));
}

TEST_CASE("Einsum multiplies two operands and sums over shared labels") {
  expect_close(einsum("ij,jk->ik", {kA, kB}),
               Tensor::of<float>({2, 4}, {20, 23, 26, 29, 56, 68, 80, 92}));
  expect_close(einsum("ij,ij->", {kA, kA}), Tensor::scalar(55.0f));
  expect_close(einsum("ab,ab->ba", {kA, kA}),
               Tensor::of<float>({3, 2}, {0, 9, 1, 16, 4, 25}));
  expect_close(einsum("bij,bjk->bik", {kCube, kCube}),
               Tensor::of<float>({2, 2, 2}, {2, 3, 6, 11, 46, 55, 66, 79}));
  expect_close(
      einsum("i,j->ij", {counting({2}), Tensor::vector<float>({3, 4, 5})}),
      Tensor::of<float>({2, 3}, {0, 0, 0, 3, 4, 5}));
  // One operand is summed by itself first.
  expect_close(einsum("ij,k->ik", {kA, counting({3})}),
               Tensor::of<float>({2, 3}, {0, 3, 6, 0, 12, 24}));
  expect_close(einsum("aab,bc->ac", {kCube, counting({2, 4})}),
               Tensor::of<float>({2, 4}, {4, 5, 6, 7, 28, 41, 54, 67}));
  expect_close(einsum(",->", {Tensor::scalar(2.0f), Tensor::scalar(3.0f)}),
               Tensor::scalar(6.0f));
}

TEST_CASE("Einsum: an ellipsis stands for dimensions that broadcast") {
  expect_close(einsum("...ij,...jk->...ik", {kCube, counting({2, 2})}),
               Tensor::of<float>({2, 2, 2}, {2, 3, 6, 11, 10, 19, 14, 27}));
  expect_close(einsum("i...->...", {kA}), Tensor::vector<float>({3, 5, 7}));
  expect_close(einsum("...->...", {kA}), kA);
  expect_close(einsum("...i,...i->...", {kCube, counting({2})}),
               Tensor::of<float>({2, 2}, {1, 3, 5, 7}));
  expect_close(einsum("ij,jk->...ik", {kA, kB}),
               Tensor::of<float>({2, 4}, {20, 23, 26, 29, 56, 68, 80, 92}));
  expect_close(einsum("a...,b...->ab...", {counting({2, 1}), counting({1, 3})}),
               Tensor::of<float>({2, 1, 3}, {0, 0, 0, 0, 1, 2}));
}

TEST_CASE("Einsum: a repeated label in the output writes a diagonal") {
  expect_close(einsum("i->ii", {counting({3})}),
               Tensor::of<float>({3, 3}, {0, 0, 0, 0, 1, 0, 0, 0, 2}));
  expect_close(
      einsum("ij->iji", {kA}),
      Tensor::of<float>({2, 3, 2}, {0, 0, 1, 0, 2, 0, 0, 3, 0, 4, 0, 5}));
}

TEST_CASE("Einsum: sums over no elements are zero, of the operands' type") {
  expect_close(einsum("ij,jk->ik", {counting({2, 0}), counting({0, 1})}),
               Tensor::of<float>({2, 1}, {0, 0}));
  expect_close(einsum("ij->i", {counting({2, 0})}),
               Tensor::vector<float>({0, 0}));
  expect_close(einsum("ij->j", {counting({2, 0})}), counting({0}));
  constexpr int64_t kMany = int64_t{1} << 40;
  expect_close(
      einsum("ijk->", {Tensor::make(DataType::kFloat, {0, kMany, kMany})}),
      Tensor::scalar(0.0f));
  const Tensor z = Tensor::vector<Complex64>({{1, 2}, {0, 1}});
  expect_close(einsum("i,i->", {z, z}), Tensor::scalar(Complex64(-4, 4)));
  const Tensor n = Tensor::vector<int64_t>({2, 3});
  expect_close(einsum("i,i->", {n, n}), Tensor::scalar<int64_t>(13));
}

TEST_CASE("Einsum refuses equations that are malformed or do not fit") {
  const auto refused = [](const char* equation, const std::vector<Tensor>& in,
                          const char* text) {
    expect_error(einsum(equation, in), Code::kInvalidArgument, text);
  };
  refused("ij,jk", {kA, kB}, "->");
  refused("ij->ji->ij", {kA}, "->");
  refused("ij,jk->ik", {kA, kA}, "another of its label");
  refused("ij,jk,kl->il", {kA, kB, kA}, "one or two");
  refused("ij,jk->ik", {kA}, "1");
  refused("ijk->ik", {kA}, "rank 2");
  refused("i->i", {kA}, "rank 2");
  refused("ij->k", {kA}, "no operand");
  refused("i j->ij", {kA}, "\"");
  refused("1j->j", {kA}, "letter");
  refused("...i...->i", {kA}, "");
  refused("...ij,jk->ik", {kCube, counting({2, 4})}, "ellipsis");
}

}  // namespace
}  // namespace tagflow::devices
