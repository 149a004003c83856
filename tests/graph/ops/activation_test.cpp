// Shape inference of activations.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("the gradient of an activation takes inputs of one shape") {
  CHECK(infer("SeluGrad", {{2, kAny}, {kAny, 3}}) == "[2,3]");
  CHECK(infer("EluGrad", {{2, kAny}, {kAny, 3}}) == "[2,3]");
  expect_refused(infer("EluGrad", {{2}, {3}}),
                 "the inputs are [2] and [3], not of one shape");
}

}  // namespace tagflow::graph
