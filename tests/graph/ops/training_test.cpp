// Shape inference of the steps of optimizers, and its errors, for both kinds of
// variables.
#include "tests/graph/ops/updates.h"

namespace tagflow::graph {

TEST_CASE("slots, gradient and scalars of a step are checked") {
  for_both([](Updates& u) {
    const Output v = u.state({4, 3}), slot = u.state({4, 3});
    const Output scalar = u.given(PartialShape::scalar());
    CHECK(u.add("ApplyMomentum", {v, slot, scalar, u.given({4, 3}), scalar}) ==
          "");
    CHECK(u.add("SparseApplyAdagrad",
                {v, slot, scalar, u.given({7, 3}), u.indices({7})}) == "");
    expect_part(
        u.add("ApplyMomentum", {v, slot, scalar, u.given({4}), scalar}),
        "the gradient of shape [4] does not fit the variable of shape [4,3]");
  });
  for_both([](Updates& u) {
    const Output scalar = u.given(PartialShape::scalar());
    expect_part(u.add("ApplyMomentum", {u.state({4, 3}), u.state({4, 2}),
                                        scalar, u.given({4, 3}), scalar}),
                "accum of shape [4,2] does not fit the variable of shape "
                "[4,3]");
  });
  for_both([](Updates& u) {
    expect_part(u.add("ApplyGradientDescent",
                      {u.state({2}), u.given({1}), u.given({2})}),
                "alpha must be a scalar, not of shape [1]");
  });
  for_both([](Updates& u) {
    const Output v = u.state({4, 3}), slot = u.state({4, 3});
    const Output scalar = u.given(PartialShape::scalar());
    expect_part(u.add("SparseApplyAdagrad",
                      {v, slot, scalar, u.given({7, 3}), u.indices({6})}),
                "indices of shape [6] do not fit the gradient of shape [7,3]");
  });
  for_both([](Updates& u) {
    const Output v = u.state(PartialShape()), slot = u.state(PartialShape());
    const Output scalar = u.given(PartialShape::scalar());
    expect_part(
        u.add("SparseApplyAdagrad", {v, slot, scalar, scalar, u.indices({7})}),
        "the gradient must be at least a vector, not a scalar");
  });
}

}  // namespace tagflow::graph
