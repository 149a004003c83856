// Convolutions.
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

AttrMap window(Ints strides, const char* padding) {
  return {{"strides", std::move(strides)}, {"padding", padding}};
}

AttrMap with(AttrMap attrs, const char* name, AttrValue value) {
  attrs.insert_or_assign(name, std::move(value));
  return attrs;
}

// A gradient op of x[0] and x[1], with `sizes` between or before them.
Function sized(const char* op, std::initializer_list<int32_t> sizes, int at,
               AttrMap attrs) {
  return [op, sizes = Tensor::vector<int32_t>(sizes), at, attrs](
             const Scope& s, const Outputs& x) {
    const graph::Inputs inputs = at == 0 ? graph::Inputs{sizes, x[0], x[1]}
                                         : graph::Inputs{x[0], sizes, x[1]};
    return Outputs(s.op(op, inputs, attrs));
  };
}

}  // namespace

TEST_CASE("Conv2D has gradients by images and filters") {
  const Tensor x = values({2, 4, 3, 2}), filter = values({2, 2, 2, 2});
  check_gradients(op_of("Conv2D", window({1, 1, 1, 1}, "SAME")), {x, filter},
                  {.order = 3});
  check_gradients(op_of("Conv2D", window({1, 2, 1, 1}, "VALID")), {x, filter});
  check_gradients(op_of("Conv2D", window({1, 2, 2, 1}, "SAME")), {x, filter});
  check_gradients(op_of("Conv2D", with(window({1, 1, 1, 1}, "SAME"),
                                       "dilations", Ints{1, 2, 1, 1})),
                  {x, filter});
  check_gradients(
      op_of("Conv2D", with(window({1, 1, 2, 1}, "EXPLICIT"),
                           "explicit_paddings", Ints{0, 0, 1, 0, 0, 2, 0, 0})),
      {x, filter});
}

TEST_CASE("Conv2D has gradients with channels first, and by groups of them") {
  check_gradients(op_of("Conv2D", with(window({1, 1, 1, 2}, "VALID"),
                                       "data_format", "NCHW")),
                  {values({1, 2, 3, 4}), values({2, 2, 2, 2})});
  check_gradients(op_of("Conv2D", window({1, 1, 1, 1}, "VALID")),
                  {values({1, 2, 3, 4}), values({2, 2, 2, 2})});
}

TEST_CASE("the gradient ops of Conv2D have gradients") {
  const AttrMap attrs = window({1, 2, 1, 1}, "SAME");
  check_gradients(sized("Conv2DBackpropInput", {1, 3, 3, 2}, 0, attrs),
                  {values({2, 2, 2, 1}), values({1, 2, 3, 1})});
  check_gradients(sized("Conv2DBackpropFilter", {2, 2, 2, 1}, 1, attrs),
                  {values({1, 3, 3, 2}), values({1, 2, 3, 1})});
}

TEST_CASE("DepthwiseConv2dNative and its gradient ops have gradients") {
  const AttrMap attrs = window({1, 1, 1, 1}, "SAME");
  check_gradients(op_of("DepthwiseConv2dNative", attrs),
                  {values({1, 3, 3, 2}), values({2, 2, 2, 2})});
  check_gradients(
      op_of("DepthwiseConv2dNative",
            with(window({1, 1, 1, 1}, "VALID"), "data_format", "NCHW")),
      {values({1, 2, 3, 3}), values({2, 2, 2, 1})});
  check_gradients(
      sized("DepthwiseConv2dNativeBackpropInput", {1, 3, 2, 2}, 0, attrs),
      {values({2, 2, 2, 1}), values({1, 3, 2, 2})});
  check_gradients(
      sized("DepthwiseConv2dNativeBackpropFilter", {2, 2, 2, 1}, 1, attrs),
      {values({1, 3, 2, 2}), values({1, 3, 2, 2})});
}

TEST_CASE("Conv3D and its gradient ops have gradients") {
  const AttrMap attrs = window({1, 1, 2, 1, 1}, "SAME");
  check_gradients(op_of("Conv3D", attrs),
                  {values({1, 2, 3, 2, 2}), values({2, 2, 1, 2, 1})});
  check_gradients(sized("Conv3DBackpropInputV2", {1, 2, 3, 2, 1}, 0, attrs),
                  {values({2, 2, 1, 1, 1}), values({1, 2, 2, 2, 1})});
  check_gradients(sized("Conv3DBackpropFilterV2", {2, 2, 1, 1, 1}, 1, attrs),
                  {values({1, 2, 3, 2, 1}), values({1, 2, 2, 2, 1})});
}
