// Shape inference of calls and functional control flow.
#include "tests/graph/hand_made_functions.h"
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {

TEST_CASE("an If's outputs have the shapes that are declared") {
  const auto branch = [](std::vector<PartialShape> shapes) {
    return infer(
        "If", {Tensor::scalar(true), {2}},
        {{"Tout", std::vector<DataType>{DataType::kFloat, DataType::kInt32}},
         {"then_branch", call_of("f")},
         {"else_branch", call_of("f")},
         {"output_shapes", std::move(shapes)}});
  };
  CHECK(branch({}) == "<unknown><unknown>");
  CHECK(branch({{2, kAny}, PartialShape()}) == "[2,?]<unknown>");
  expect_refused(branch({{2}}),
                 "[If] node \"op\": 1 output_shapes for 2 outputs");
}

TEST_CASE("a While has a positive number of parallel iterations") {
  expect_refused(infer("While", {{2}},
                       {{"T", std::vector<DataType>{DataType::kFloat}},
                        {"cond", call_of("f")},
                        {"body", call_of("f")},
                        {"parallel_iterations", 0}}),
                 "[While] node \"op\": attribute \"parallel_iterations\" is 0, "
                 "at least 1 is wanted");
}

TEST_CASE("a For is over scalars") {
  const AttrMap attrs{{"T", std::vector<DataType>()}, {"body", call_of("f")}};
  CHECK(infer("For", {Tensor::scalar(0), unknown_ints({}), unknown_ints({})},
              attrs) == "");
  expect_refused(
      infer("For", {Tensor::scalar(0), ints({1, 2}), Tensor::scalar(1)}, attrs),
      "has shape [2], of rank 1; rank 0 is wanted");
  CHECK(infer("_ForTripCount", {Tensor::scalar(0), Tensor::scalar(1),
                                Tensor::scalar(1)}) == "[]");
}

}  // namespace tagflow::graph
