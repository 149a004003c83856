#include <doctest/doctest.h>

#include <limits>

#include "graph/handle.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

class Named : public Resource {
 public:
  explicit Named(std::string name) : name_(std::move(name)) {}
  std::string describe() const override { return name_; }

 private:
  std::string name_;
};

const Tensor kAxis0 = Tensor::scalar(0);

}  // namespace

TEST_CASE("GatherV2 refuses an index outside, in every type of index") {
  const Tensor params = Tensor::vector<float>({1, 2, 3});
  for (const Tensor& index :
       {Tensor::scalar(3), Tensor::scalar(-1),
        Tensor::scalar(std::numeric_limits<int64_t>::min()),
        Tensor::scalar(int64_t(1) << 32), Tensor::scalar(int16_t(-7))})
    expect_error(run_op("GatherV2", {params, index, kAxis0}),
                 Code::kInvalidArgument, "outside [0, 3)");
  expect_error(run_op("GatherNd", {params, Tensor::vector<int32_t>({3})}),
               Code::kInvalidArgument, "[3] does not index into");
}

TEST_CASE("GatherV2 refuses every index into an empty tensor") {
  const Tensor empty = Tensor::make(DataType::kFloat, {0, 2});
  expect_error(run_op("GatherV2", {empty, Tensor::scalar(0), kAxis0}),
               Code::kInvalidArgument, "outside [0, 0)");
  const auto none =
      run_op("GatherV2", {empty, Tensor::make(DataType::kInt32, {0}), kAxis0});
  REQUIRE_MESSAGE(none.ok(), none.status().to_string());
  CHECK((*none)[0].shape() == Shape({0, 2}));
}

TEST_CASE("GatherNd refuses slices of a huge and empty tensor") {
  constexpr int64_t kMany = int64_t{1} << 40;
  expect_error(
      run_op("GatherNd", {Tensor::make(DataType::kFloat, {kMany, kMany, 0}),
                          Tensor::vector<int64_t>({kMany - 1, kMany - 1})}),
      Code::kInvalidArgument,
      "1 slices are wanted of params "
      "float[1099511627776,1099511627776,0], which are empty");
}

// As TensorFlow has it, which has nothing to look up then.
TEST_CASE("GatherV2 checks no index if the result has no elements") {
  const Tensor rows = Tensor::make(DataType::kFloat, {3, 0});
  for (const int32_t index : {-1, 0, 5}) {
    const auto outputs =
        run_op("GatherV2", {rows, Tensor::vector<int32_t>({index}), kAxis0});
    REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
    CHECK((*outputs)[0].shape() == Shape({1, 0}));
  }
}

TEST_CASE("ScatterNd refuses updates without dimensions") {
  const Tensor one = Tensor::scalar(1.0f);
  const Tensor at = Tensor::vector<int32_t>({0});
  const Tensor x = Tensor::vector<float>({1, 2});
  expect_error(run_op("ScatterNd", {at, one, Tensor::vector<int32_t>({2})}),
               Code::kInvalidArgument, "updates must be at least a vector");
  for (const char* op :
       {"TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub",
        "TensorScatterMin", "TensorScatterMax", "ScatterNdNonAliasingAdd"})
    expect_error(run_op(op, {x, at, one}), Code::kInvalidArgument,
                 "updates must be at least a vector, got float[]");
}

TEST_CASE("GatherV2 gathers handles by identity") {
  Tensor handles = Tensor::make(DataType::kResource, {2});
  for (int i : {0, 1})
    handles.mutable_data<ResourceHandle>()[i] =
        ResourceHandle(make_ref_counted<Named>(i == 0 ? "a" : "b"));
  const auto outputs =
      run_op("GatherV2", {handles, Tensor::vector<int32_t>({1, 0, 1}), kAxis0});
  REQUIRE(outputs.ok());
  const auto* gathered = (*outputs)[0].data<ResourceHandle>();
  CHECK(gathered[0].get() == handles.data<ResourceHandle>()[1].get());
  CHECK(gathered[1].get()->describe() == "a");
}

TEST_CASE("large gathers agree with single ones") {
  Tensor params = Tensor::make(DataType::kInt32, {50, 7, 3});
  for (int32_t i = 0; i < 50 * 21; ++i) params.mutable_data<int32_t>()[i] = i;
  Tensor indices = Tensor::make(DataType::kInt64, {50, 90});
  for (int64_t i = 0; i < 50 * 90; ++i)
    indices.mutable_data<int64_t>()[i] = i * 5 % 7;
  const auto outputs = run_op("GatherV2", {params, indices, Tensor::scalar(1)},
                              {{"batch_dims", 1}});
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  REQUIRE((*outputs)[0].shape() == Shape({50, 90, 3}));
  for (int64_t i = 0; i < 50 * 90; ++i)
    for (int64_t j = 0; j < 3; ++j)
      REQUIRE((*outputs)[0].data<int32_t>()[i * 3 + j] ==
              i / 90 * 21 + i * 5 % 7 * 3 + j);
}

TEST_CASE("ScatterNd adds up repeated updates, TensorScatterUpdate does not") {
  const Tensor indices = Tensor::of<int32_t>({3, 1}, {1, 1, 0});
  const Tensor updates = Tensor::vector<float>({1, 2, 4});
  expect_close(
      run_op("ScatterNd", {indices, updates, Tensor::vector<int32_t>({3})}),
      Tensor::vector<float>({4, 3, 0}));
  expect_close(run_op("TensorScatterUpdate",
                      {Tensor::vector<float>({9, 9, 9}), indices, updates}),
               Tensor::vector<float>({4, 2, 9}));
}

TEST_CASE("TensorScatterAdd: sums of integers wrap around") {
  expect_close(
      run_op("TensorScatterAdd",
             {Tensor::vector<int32_t>({std::numeric_limits<int32_t>::max()}),
              Tensor::of<int32_t>({1, 1}, {0}), Tensor::vector<int32_t>({1})}),
      Tensor::vector<int32_t>({std::numeric_limits<int32_t>::min()}));
}

TEST_CASE("scattering checks shapes and sizes") {
  const Tensor indices = Tensor::of<int64_t>({2, 1}, {0, 1});
  const Tensor updates = Tensor::vector<float>({1, 2});
  auto scatter = [&](std::initializer_list<int64_t> shape) {
    return run_op("ScatterNd",
                  {indices, updates, Tensor::vector<int64_t>(shape)});
  };
  expect_error(scatter({0}), Code::kInvalidArgument, "some are empty");
  expect_error(scatter({1}), Code::kInvalidArgument, "does not index into");
  expect_error(scatter({2, 2}), Code::kInvalidArgument, "do not fit");
  expect_error(scatter({-2}), Code::kInvalidArgument, "negative");
  expect_error(scatter({int64_t(1) << 32, int64_t(1) << 32}),
               Code::kInvalidArgument, "overflows");
  CHECK(scatter({int64_t(1) << 42}).status().code() ==
        Code::kResourceExhausted);
}

TEST_CASE("GatherNd skips bad indices if the node says so") {
  expect_close(run_op("GatherNd",
                      {Tensor::vector<float>({1, 2, 3}),
                       Tensor::of<int32_t>({3, 1}, {2, 3, -1})},
                      {{"bad_indices_policy", "IGNORE"}}),
               Tensor::vector<float>({3, 0, 0}));
  expect_error(
      run_op("GatherNd",
             {Tensor::vector<float>({1}), Tensor::of<int32_t>({1, 1}, {0})},
             {{"bad_indices_policy", "SHRUG"}}),
      Code::kInvalidArgument, "SHRUG");
}

}  // namespace tagflow::devices
