#include <doctest/doctest.h>

#include "tests/devices/state_fixture.h"

namespace tagflow::devices {

namespace {

Tensor table() { return Tensor::of<float>({3, 2}, {0, 1, 10, 11, 20, 21}); }

}  // namespace

TEST_CASE("gathers of a variable leave its buffer to itself") {
  const Tensor v = make_variable("v", table());
  const Tensor rows = Tensor::vector<int32_t>({2, 0});
  const Tensor expected = Tensor::of<float>({2, 2}, {20, 21, 0, 1});
  for (const std::string op : {"ResourceGather", "Gather", "GatherV2"}) {
    INFO(op);
    std::vector<Tensor> inputs{v, rows};
    if (op == "GatherV2") inputs.push_back(Tensor::scalar<int32_t>(0));
    AttrMap attrs;
    if (op == "ResourceGather") attrs["dtype"] = DataType::kFloat;
    expect_close(must_run_on_state(op, inputs, attrs), expected);
    CHECK(value_of(v).unique());
  }
  const Tensor vectors = Tensor::of<int32_t>({2, 1}, {2, 0});
  expect_close(must_run_on_state("GatherNd", {v, vectors}), expected);
  expect_close(must_run_on_state("ResourceGatherNd", {v, vectors},
                                 {{"dtype", DataType::kFloat}}),
               expected);
  CHECK(value_of(v).unique());
}

TEST_CASE("columns of a reference are gathered along an axis") {
  const Tensor v = make_variable("v", table());
  expect_close(must_run_on_state("GatherV2", {v, Tensor::vector<int32_t>({1}),
                                              Tensor::scalar<int32_t>(-1)}),
               Tensor::of<float>({3, 1}, {1, 11, 21}));
}

TEST_CASE("gathers name what is wrong with the variable or an index") {
  const AttrMap of_float{{"dtype", DataType::kFloat}};
  const Tensor v = make_variable("v", table());
  expect_error(run_on_state("ResourceGather",
                            {v, Tensor::of<int32_t>({1, 2}, {0, 3})}, of_float),
               Code::kInvalidArgument, "indices[1] = 3 is outside [0, 3)");
  expect_error(run_on_state("ResourceGatherNd",
                            {v, Tensor::of<int32_t>({1, 2}, {0, 2})}, of_float),
               Code::kInvalidArgument,
               "indices[0] = [0,2] does not index into");
  expect_error(run_on_state("ResourceGather", {v, Tensor::vector<int32_t>({0})},
                            {{"dtype", DataType::kInt32}}),
               Code::kInvalidArgument,
               "variable \"v\" of float[3,2] is used as one of int32");
  expect_error(
      run_on_state("ResourceGather", {v, Tensor::vector<int32_t>({0})},
                   {{"dtype", DataType::kFloat}, {"batch_dims", int64_t(-1)}}),
      Code::kInvalidArgument, "batch_dims is -1, below 0");
  expect_error(
      run_on_state("ResourceGather",
                   {v, Tensor::of<int32_t>({3, 1}, {0, 0, 0})},
                   {{"dtype", DataType::kFloat}, {"batch_dims", int64_t(2)}}),
      Code::kInvalidArgument,
      "batch_dims is 2, but params float[3,2] have only 2 dimensions, of which "
      "one must be left to gather from");
  expect_error(
      run_on_state("ResourceGather", {v, Tensor::scalar<int32_t>(0)},
                   {{"dtype", DataType::kFloat}, {"batch_dims", int64_t(1)}}),
      Code::kInvalidArgument,
      "batch_dims is 1, but indices int32[] have 0 dimensions");
  const Tensor empty = make_variable("empty", DataType::kFloat, {});
  expect_error(run_on_state("Gather", {empty, Tensor::vector<int32_t>({0})}),
               Code::kFailedPrecondition, "variable \"empty\"");
}

}  // namespace tagflow::devices
