// Sums of products against products and sums one by one. All numbers are small
// integers, whose sums are exact in any order.
#include "devices/kernels/product/product_sum.h"

#include "tests/devices/one_step.h"
#include "tests/devices/small_numbers.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

Tensor sum_of(const Tensor& value) {
  return OneStep().value("_ProductSum", {value});
}

Tensor added(const Tensor& sum, const Tensor& a, const Tensor& b,
             AttrMap attrs = {}) {
  return OneStep().value("_ProductSumAdd", {sum, a, b}, std::move(attrs));
}

Tensor value_of(const Tensor& sum, DataType dtype = DataType::kFloat) {
  return OneStep().value("_ProductSumValue", {sum}, {{"T", dtype}});
}

// The products added one by one.
Tensor plainly_added(const Tensor& sum, const Tensor& a, const Tensor& b,
                     AttrMap attrs = {}) {
  const Tensor product = OneStep().value("MatMul", {a, b}, std::move(attrs));
  return OneStep().value("AddN", {sum, product});
}

AttrMap transposed(bool a, bool b) {
  return {{"transpose_a", a}, {"transpose_b", b}};
}

const AttrMap kTransposed = transposed(true, false);

}  // namespace

TEST_CASE("A sum of products equals the products added one by one") {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble})
    // Of rows that are few, that fill what there is room for, and that are
    // more.
    for (const int64_t rows : {1, 60, 256, 700}) {
      CAPTURE(rows);
      Tensor expected = numbers(dtype, {9, 13}, 1);
      Tensor sum = sum_of(expected);
      for (int i = 0; i < 20; ++i) {
        const Tensor a = numbers(dtype, {rows, 9}, i);
        const Tensor b = numbers(dtype, {rows, 13}, 3 * i);
        sum = added(sum, a, b, kTransposed);
        expected = plainly_added(expected, a, b, kTransposed);
      }
      expect_close(value_of(sum, dtype), expected);
    }
}

TEST_CASE("A sum of products takes products of other forms in between") {
  Tensor expected = numbers(DataType::kFloat, {6, 4}, 1);
  Tensor sum = sum_of(expected);
  for (int i = 0; i < 8; ++i) {
    const bool a_turned = i % 2 == 0, b_turned = i % 3 == 0;
    const Tensor a =
        numbers(DataType::kFloat, a_turned ? Shape{5, 6} : Shape{6, 5}, i);
    const Tensor b =
        numbers(DataType::kFloat, b_turned ? Shape{4, 5} : Shape{5, 4}, i);
    sum = added(sum, a, b, transposed(a_turned, b_turned));
    expected = plainly_added(expected, a, b, transposed(a_turned, b_turned));
  }
  expect_close(value_of(sum), expected);
}

TEST_CASE("A sum of no products is its value, even if sizes are 0") {
  const Tensor value = numbers(DataType::kFloat, {2, 3}, 1);
  expect_close(value_of(sum_of(value)), value);
  const auto empty = [](const Shape& shape) {
    return Tensor::make(DataType::kFloat, shape);
  };
  const Tensor same =
      added(sum_of(value), empty({0, 2}), empty({0, 3}), kTransposed);
  expect_close(value_of(same), value);
  const Tensor none = added(sum_of(empty({0, 3})), empty({4, 0}),
                            numbers(DataType::kFloat, {4, 3}, 0), kTransposed);
  expect_close(value_of(none), empty({0, 3}));
}

TEST_CASE("A sum of products that is added to does not change for others") {
  const Tensor value = numbers(DataType::kFloat, {3, 2}, 1);
  const Tensor a = numbers(DataType::kFloat, {4, 3}, 2);
  const Tensor b = numbers(DataType::kFloat, {4, 2}, 3);
  const Tensor once = added(sum_of(value), a, b, kTransposed);
  const Tensor twice = added(once, a, b, kTransposed);
  const Tensor sum_once = plainly_added(value, a, b, kTransposed);
  const Tensor sum_twice = plainly_added(sum_once, a, b, kTransposed);
  for (int i = 0; i < 2; ++i) {
    expect_close(value_of(twice), sum_twice);
    expect_close(value_of(once), sum_once);
  }
  expect_close(value, numbers(DataType::kFloat, {3, 2}, 1));
}

TEST_CASE("A sum of products refuses shapes that do not fit") {
  const auto zeros = [](const Shape& shape) {
    return numbers(DataType::kFloat, shape, 0);
  };
  const auto refused = [&](const Shape& sum, const Shape& a, const Shape& b,
                           const char* text) {
    expect_error(
        OneStep().run("_ProductSumAdd",
                      {sum_of(zeros(sum)), zeros(a), zeros(b)}, kTransposed),
        Code::kInvalidArgument, text);
  };
  refused({2, 3}, {4, 2}, {5, 3},
          "inner dimensions of float[4,2] (transposed)");
  refused({2, 3}, {4, 3}, {4, 2}, "[3,2] cannot be added to float[2,3]");
  refused({6}, {4, 2}, {4, 3}, "[2,3] cannot be added to float[6]");
  refused({2, 3}, {4, 2, 1}, {4, 3}, "float[4,2,1], not a matrix");
  const Tensor list = OneStep().value("ZeroVariant", {});
  expect_error(
      OneStep().run("_ProductSumAdd", {list, zeros({1, 1}), zeros({1, 1})}),
      Code::kInvalidArgument,
      "must be one sum of products, not an empty variant");
  expect_error(OneStep().run("_ProductSumValue", {sum_of(zeros({1, 1}))},
                             {{"T", DataType::kDouble}}),
               Code::kInvalidArgument, "a sum of double is wanted");
}
