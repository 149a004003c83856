// Pools, their gradients, and the gradients of those.
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

using Ints = std::vector<int64_t>;

AttrMap pool(Ints ksize, Ints strides, const char* padding,
             const char* format = nullptr) {
  AttrMap attrs = {{"ksize", std::move(ksize)},
                   {"strides", std::move(strides)},
                   {"padding", padding}};
  if (format != nullptr) attrs.emplace("data_format", format);
  return attrs;
}

// The cubes of f of the squares: so that all orders have something to say.
Function curved(Function f) {
  return [f = std::move(f)](const Scope& s, const Outputs& x) {
    const graph::Output y = f(s, {ops::square(s, x[0])})[0];
    return Outputs(ops::mul(s, y, ops::square(s, y)));
  };
}

// f(x, pool(x), x[1]) of a gradient op f.
Function of_pool(const char* op, const char* pool_op, AttrMap attrs) {
  return [=](const Scope& s, const Outputs& x) {
    const graph::Output y = s.op(pool_op, {x[0]}, attrs);
    return Outputs(s.op(op, {x[0], y, x[1]}, attrs));
  };
}

}  // namespace

TEST_CASE("MaxPool has gradients to any order") {
  const Tensor x = values({1, 4, 5, 2});
  for (const char* padding : {"SAME", "VALID"}) {
    const AttrMap attrs = pool({1, 2, 3, 1}, {1, 1, 2, 1}, padding);
    check_gradients(curved(op_of("MaxPool", attrs)), {x}, {.order = 3});
  }
  check_gradients(curved(op_of("MaxPool", pool({1, 1, 2, 2}, {1, 1, 1, 2},
                                               "SAME", "NCHW"))),
                  {x});
}

TEST_CASE("MaxPool with explicit padding has gradients") {
  AttrMap attrs = pool({1, 2, 3, 1}, {1, 1, 2, 1}, "EXPLICIT");
  attrs.emplace("explicit_paddings", Ints{0, 0, 1, 0, 2, 1, 0, 0});
  const Tensor x = values({2, 3, 4, 1}, -2, -1);
  check_gradients(curved(op_of("MaxPool", attrs)), {x}, {.order = 3});
}

TEST_CASE("MaxPoolV2 has gradients to any order") {
  const Function f = [](const Scope& s, const Outputs& x) {
    return Outputs(s.op("MaxPoolV2",
                        {x[0], ops::constant<int32_t>(s, {1, 2, 2, 1}),
                         ops::constant<int32_t>(s, {1, 1, 2, 1})},
                        {{"padding", "SAME"}}));
  };
  check_gradients(curved(f), {values({1, 3, 4, 2})}, {.order = 3});
}

TEST_CASE("MaxPool3D has gradients to any order") {
  check_gradients(curved(op_of("MaxPool3D",
                               pool({1, 2, 2, 1, 1}, {1, 1, 2, 1, 1}, "SAME"))),
                  {values({1, 2, 4, 2, 1})}, {.order = 3});
}

TEST_CASE("gradient ops of max pools have gradients by what they distribute") {
  const AttrMap attrs = pool({1, 2, 2, 1}, {1, 2, 1, 1}, "VALID");
  const Tensor x = values({1, 4, 3, 1}), y = values({1, 2, 2, 1});
  check_gradients(of_pool("MaxPoolGrad", "MaxPool", attrs), {x, y});
  check_gradients(of_pool("MaxPoolGradGrad", "MaxPool", attrs),
                  {x, values({1, 4, 3, 1})});
  const AttrMap attrs3 = pool({1, 2, 1, 2, 1}, {1, 1, 1, 1, 1}, "VALID");
  const Tensor x3 = values({1, 2, 1, 3, 1});
  check_gradients(of_pool("MaxPool3DGrad", "MaxPool3D", attrs3),
                  {x3, values({1, 1, 1, 2, 1})});
  check_gradients(of_pool("MaxPool3DGradGrad", "MaxPool3D", attrs3),
                  {x3, values({1, 2, 1, 3, 1})});
}

TEST_CASE("MaxPoolWithArgmax has gradients to any order") {
  AttrMap attrs = pool({1, 2, 2, 1}, {1, 1, 1, 1}, "SAME");
  check_gradients(curved(op_of("MaxPoolWithArgmax", attrs)),
                  {values({2, 3, 3, 2})}, {.order = 3});
  attrs.emplace("include_batch_in_index", true);
  check_gradients(curved(op_of("MaxPoolWithArgmax", attrs)),
                  {values({2, 3, 3, 2})});
}

TEST_CASE("AvgPool has gradients to any order") {
  const Tensor x = values({1, 4, 5, 2});
  for (const char* padding : {"SAME", "VALID"})
    check_gradients(
        curved(op_of("AvgPool", pool({1, 2, 3, 1}, {1, 1, 2, 1}, padding))),
        {x}, {.order = 3});
  check_gradients(curved(op_of("AvgPool", pool({1, 1, 2, 2}, {1, 1, 2, 1},
                                               "SAME", "NCHW"))),
                  {x});
  check_gradients(curved(op_of("AvgPool3D",
                               pool({1, 2, 2, 1, 1}, {1, 1, 2, 1, 1}, "SAME"))),
                  {values({1, 2, 4, 2, 1})}, {.order = 3});
}

TEST_CASE("MaxPool gives its gradient to the first of equal elements") {
  const Tensor x = Tensor::of<double>({1, 1, 4, 1}, {3, 3, 1, 3});
  const auto grad = gradients_of(
      op_of("MaxPool", pool({1, 1, 2, 1}, {1, 1, 2, 1}, "VALID")), {x})[0];
  CHECK(identical(grad, Tensor::of<double>({1, 1, 4, 1}, {1, 0, 0, 1})));
}
