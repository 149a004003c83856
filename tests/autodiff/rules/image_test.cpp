// Images of other sizes.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/floats.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
using graph::Outputs;
using graph::Scope;
namespace ops = tagflow::graph::ops;

namespace {

AttrMap resize(bool align_corners, bool half_pixel_centers) {
  return {{"align_corners", align_corners},
          {"half_pixel_centers", half_pixel_centers}};
}

Function resized(const char* op, std::initializer_list<int32_t> size,
                 AttrMap attrs) {
  return [op, size = Tensor::vector<int32_t>(size), attrs](const Scope& s,
                                                           const Outputs& x) {
    const graph::Output y =
        s.op(op, {ops::mul(s, x[0], ops::square(s, x[0])), size}, attrs);
    return Outputs(ops::cast(s, ops::square(s, y), DataType::kDouble));
  };
}

}  // namespace

TEST_CASE("resized images have gradients") {
  const Tensor x = values({1, 2, 3, 1}, 0.5, 1.5);
  for (const AttrMap& attrs :
       {resize(false, false), resize(true, false), resize(false, true)}) {
    check_gradients(resized("ResizeNearestNeighbor", {3, 2}, attrs), {x});
    check_gradients(resized("ResizeNearestNeighbor", {4, 5}, attrs), {x});
    check_gradients(resized("ResizeBilinear", {3, 2}, attrs), {x},
                    float_options());
    check_gradients(resized("ResizeBilinear", {4, 5}, attrs), {x},
                    float_options());
  }
}
