// Shape inference of ops that resize images, and its errors.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("a resized image has the size that is asked for") {
  CHECK(infer("ResizeBilinear", {{2, 8, 8, 3}, ints({4, 5})}) == "[2,4,5,3]");
  CHECK(infer("ResizeNearestNeighbor", {{2, 8, 8, 3}, unknown_ints({2})}) ==
        "[2,?,?,3]");
  CHECK(infer("ResizeBilinearGrad", {{2, 4, 5, 3}, {2, 8, 8, 3}}) ==
        "[2,8,8,3]");
  expect_refused(infer("ResizeBilinear", {{2, 8, 8, 3}, ints({4, 5, 6})}),
                 "[ResizeBilinear] node \"op\": the size has 3 elements, not "
                 "2");
}

}  // namespace tagflow::graph
