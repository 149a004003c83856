// Gradients of unary functions.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

Tensor iota(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  std::iota(tensor.mutable_data<float>(),
            tensor.mutable_data<float>() + shape.num_elements(), 0.0f);
  return tensor;
}

}  // namespace

TEST_CASE("gradients of unary functions broadcast nothing") {
  for (const char* op : {"SigmoidGrad", "TanhGrad", "SqrtGrad", "InvGrad"})
    expect_error(run_op(op, {iota({2}), iota({1})}), Code::kInvalidArgument,
                 "the inputs must have as many elements, not float[2] and "
                 "float[1]");
  for (const char* op : {"SeluGrad", "SoftsignGrad"})
    expect_error(run_op(op, {iota({2}), iota({1})}), Code::kInvalidArgument,
                 "the inputs must have one shape, not float[2] and float[1]");
}

TEST_CASE("gradients of unary functions pair elements whatever the shapes") {
  for (const char* op : {"SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad",
                         "ReciprocalGrad", "InvGrad"}) {
    const Tensor y = iota({2, 3}), dy = iota({6});
    const auto alike = run_op(op, {y, *dy.reshaped(y.shape())});
    REQUIRE(alike.ok());
    expect_close(run_op(op, {y, dy}), (*alike)[0]);
    expect_close(run_op(op, {dy, y}), *(*alike)[0].reshaped({6}));
    const Tensor one = Tensor::scalar(0.5f);
    expect_close(run_op(op, {one, *one.reshaped({1, 1})}),
                 (*run_op(op, {one, one}))[0]);
  }
}

namespace {

// The op of y = 0 and y = infinity, of one element and of a whole row.
template <class T>
void check_singular_points(const char* op) {
  CAPTURE(op);
  CAPTURE(dtype_name(kDataTypeOf<T>));
  const T infinity = T(std::numeric_limits<float>::infinity());
  for (const T y : {T(0), infinity}) {
    const Tensor one = Tensor::scalar(y), no_gradient = Tensor::scalar(T(0));
    expect_close(run_op(op, {one, no_gradient}), no_gradient);
    Tensor row = Tensor::make(kDataTypeOf<T>, {37});
    Tensor zeros = Tensor::make(kDataTypeOf<T>, {37});
    std::fill_n(row.mutable_data<T>(), 37, y);
    std::fill_n(zeros.mutable_data<T>(), 37, T(0));
    expect_close(run_op(op, {row, zeros}), zeros);
  }
}

}  // namespace

TEST_CASE("a gradient of 0 stays 0 at the singular points of roots") {
  for (const char* op :
       {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"}) {
    check_singular_points<float>(op);
    check_singular_points<double>(op);
    check_singular_points<Half>(op);
    check_singular_points<BFloat16>(op);
    check_singular_points<Complex64>(op);
    check_singular_points<Complex128>(op);
  }
  // Any other gradient is infinite there.
  const float infinity = std::numeric_limits<float>::infinity();
  expect_close(run_op("SqrtGrad", {Tensor::vector<float>({0, 0}),
                                   Tensor::vector<float>({0, 1})}),
               Tensor::vector<float>({0, infinity}));
}

}  // namespace tagflow::devices
