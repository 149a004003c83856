// Shape inference of ops on strings, and its errors.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("strings are joined along the dimensions that a vector names") {
  const Tensor matrix = Tensor::of<int32_t>({1, 1}, {0});
  const InferInput strings(PartialShape{2, 2}, DataType::kString);
  CHECK(infer("ReduceJoin", {strings, ints({0})}) == "[2]");
  expect_refused(infer("ReduceJoin", {strings, matrix}),
                 "reduction_indices is [1,1], not a vector");
}

}  // namespace tagflow::graph
