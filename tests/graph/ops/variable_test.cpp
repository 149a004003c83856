// Shape inference of updates and gathers of variables, and its errors, for both
// kinds of variables.
#include "tests/graph/ops/updates.h"

namespace tagflow::graph {

TEST_CASE("updates of rows fit their indices, or are one for all") {
  for_both([](Updates& u) {
    const Output v = u.state({4, 3});
    CHECK(u.add("ScatterAdd", {v, u.indices({2}), u.given({2, 3})}) == "");
    CHECK(u.add("ScatterMul", {v, u.indices({2, 5}), u.given({})}) == "");
    CHECK(u.add("ScatterDiv", {v, u.indices({}), u.given({3})}) == "");
    expect_part(
        u.add("ScatterMin", {v, u.indices({2}), u.given({2, 4})}),
        "updates [2,4] are not a scalar, and should be [2,3] for indices "
        "[2] into [4,3]");
  });
  for_both([](Updates& u) {
    expect_part(
        u.add("ScatterAdd",
              {u.state(PartialShape::scalar()), u.indices({2}), u.given({})}),
        u.is_reference() ? "the variable must be at least a vector" : "");
  });
}

TEST_CASE("updates of slices fit what the vectors pick") {
  for_both([](Updates& u) {
    const Output v = u.state({4, 3});
    CHECK(u.add("ScatterNdAdd", {v, u.indices({2, 1}), u.given({2, 3})}) == "");
    CHECK(u.add("ScatterNdMax", {v, u.indices({5, 2}), u.given({5})}) == "");
    // What a handle stands for may be of another shape than is declared.
    if (u.is_reference())
      expect_part(u.add("ScatterNdSub", {v, u.indices({2, 1}), u.given({2})}),
                  "updates [2] should be [2,3]");
  });
}

TEST_CASE("a slice of a variable takes a value of its shape") {
  for_both([](Updates& u) {
    const Output v = u.state({4, 3});
    const Inputs bounds{v, Tensor::vector<int32_t>({1}),
                        Tensor::vector<int32_t>({3}),
                        Tensor::vector<int32_t>({1})};
    auto with = [&](PartialShape value) {
      Inputs inputs = bounds;
      inputs.add(u.given(std::move(value)));
      return u.add("StridedSliceAssign", inputs);
    };
    CHECK(with({2, 3}) == "");
    expect_part(with({3, 3}), "the value is [3,3], the slice is [2,3]");
  });
}

TEST_CASE("a gather of a variable has the shape of its rows") {
  Graph graph;
  const Scope s(graph);
  const ops::Variable v = ops::variable(s, DataType::kFloat, {4, 3, 2});
  const auto gather = [&](const char* op, PartialShape indices,
                          int64_t batch_dims) {
    AttrMap attrs{{"dtype", DataType::kFloat}};
    if (std::string_view(op) == "ResourceGather")
      attrs["batch_dims"] = batch_dims;
    const Output rows =
        s.op(op, {v.handle, ops::placeholder(s, DataType::kInt32, indices)},
             std::move(attrs));
    return s.status().ok() ? rows.shape().to_string()
                           : std::string(s.status().message());
  };
  CHECK(gather("ResourceGather", {5}, 0) == "[5,3,2]");
  CHECK(gather("ResourceGather", {4, 5}, 1) == "[4,5,2]");
  CHECK(gather("ResourceGatherNd", {7, 2}, 0) == "[7,2]");
  expect_part(gather("ResourceGather", {4}, -1), "batch_dims is -1, below 0");
}

}  // namespace tagflow::graph
