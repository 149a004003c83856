// Gradients of unary functions.
#include <doctest/doctest.h>

#include <numeric>

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

}  // namespace tagflow::devices
