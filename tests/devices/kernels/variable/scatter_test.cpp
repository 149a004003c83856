#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tests/devices/state/no_tensor_memory.h"
#include "tests/devices/state_fixture.h"

namespace tagflow::devices {

namespace {

Tensor numbers(int64_t rows, int64_t columns) {
  Result<Tensor> tensor = Tensor::allocate(DataType::kFloat, {rows, columns});
  REQUIRE(tensor.ok());
  float* values = tensor->mutable_data<float>();
  std::iota(values, values + tensor->num_elements(), 0.0f);
  return *std::move(tensor);
}

std::vector<std::string> both_kinds(const std::string& op) {
  return {op, "Resource" + op};
}

}  // namespace

TEST_CASE("updates of rows copy no table, even beside a reader of all") {
  for (const std::string& op : both_kinds("ScatterAdd")) {
    const Tensor v = make_variable("v", numbers(1000, 16));
    const Tensor rows = Tensor::vector<int32_t>({3, 999});
    const Tensor updates =
        Tensor::of<float>({2, 16}, std::vector<float>(32, 1.0f));
    // Before the first update a reader may have the buffer itself.
    const Tensor first = value_of(v);
    must_run_on_state(op, {v, rows, updates});
    const void* buffer = value_of(v).raw();
    CHECK(buffer != first.raw());
    CHECK(first.data<float>()[48] == 48);
    for (int i = 0; i < 3; ++i) {
      const Tensor whole = must_run_on_state("ReadVariableOp", {v},
                                             {{"dtype", DataType::kFloat}});
      CHECK(whole.raw() != buffer);
      must_run_on_state(op, {v, rows, updates});
      CHECK(value_of(v).raw() == buffer);
      CHECK(whole.data<float>()[48] == float(49 + i));
    }
    CHECK(value_of(v).data<float>()[48] == 52);
    CHECK(value_of(v).data<float>()[64] == 64);
  }
}

TEST_CASE("updates of more numbers than are passed over at once add up") {
  constexpr int64_t kNumbers = 5000, kRows = 7;
  Result<Tensor> rows = Tensor::allocate(DataType::kInt32, {kNumbers});
  REQUIRE(rows.ok());
  const auto row_of = [](int64_t i) { return i * i % kRows; };
  for (int64_t i = 0; i < kNumbers; ++i)
    rows->mutable_data<int32_t>()[i] = int32_t(row_of(i));
  // Slices of 64 bytes are divided by their numbers, those of 16 KiB by their
  // columns.
  for (const int64_t columns : {16, 4096}) {
    Result<Tensor> updates =
        Tensor::allocate(DataType::kFloat, {kNumbers, columns});
    REQUIRE(updates.ok());
    float* const given = updates->mutable_data<float>();
    for (int64_t i = 0; i < kNumbers * columns; ++i) given[i] = float(i % 11);
    for (const Tensor& by : {*updates, Tensor::scalar(3.0f)}) {
      CAPTURE(by.describe());
      std::vector<float> wanted(size_t(kRows * columns), 1.0f);
      for (int64_t i = 0; i < kNumbers; ++i)
        for (int64_t j = 0; j < columns; ++j)
          wanted[size_t(row_of(i) * columns + j)] +=
              by.rank() == 0 ? 3.0f : given[i * columns + j];
      const Tensor v = make_variable(
          "v", Tensor::of<float>({kRows, columns},
                                 std::vector<float>(wanted.size(), 1.0f)));
      must_run_on_state("ResourceScatterAdd", {v, *rows, by});
      CHECK(std::ranges::equal(value_of(v).flat<float>(), wanted));
    }
  }
}

TEST_CASE("an update that has no memory for its copy leaves the value") {
  const DataType kind = DataType::kResource, real = DataType::kFloat;
  const TestedOp scatter("ResourceScatterAdd", {kind, DataType::kInt64, real});
  const TestedOp add("AssignAddVariableOp", {kind, real});
  const TestedOp descend("ResourceApplyGradientDescent", {kind, real, real});
  const Tensor ones = Tensor::of<float>({4, 16}, std::vector<float>(64, 1.f));
  const Tensor v = make_variable("v", numbers(4, 16));
  {
    const Tensor reader = value_of(v);
    for (const auto& [op, inputs] :
         {std::pair(
              &scatter,
              std::vector{v, Tensor::vector<int64_t>({0, 1, 2, 3}), ones}),
          std::pair(&add, std::vector{v, ones}),
          std::pair(&descend, std::vector{v, Tensor::scalar(1.f), ones})}) {
      CAPTURE(op->node().op());
      CHECK(without_tensor_memory(*op, inputs).code() ==
            Code::kResourceExhausted);
      REQUIRE(value_of(v).valid());
      CHECK(identical(value_of(v), numbers(4, 16)));
      CHECK(identical(reader, numbers(4, 16)));
    }
  }
  // The next one needs no copy.
  const void* buffer = value_of(v).raw();
  must_run_on_state("AssignAddVariableOp", {v, ones});
  CHECK(value_of(v).raw() == buffer);
  CHECK(value_of(v).data<float>()[63] == 64);
}

TEST_CASE("an update of a row that comes twice is made twice, in order") {
  for (const bool in_shards : {false, true}) {
    const Tensor v = make_variable("v", numbers(4, 32));
    std::vector<float> rows(96);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = float(1 + i / 32);
    const Tensor updates = Tensor::of<float>({3, 32}, rows);
    const Tensor indices = Tensor::vector<int64_t>({1, 3, 1});
    REQUIRE(
        run_on_state("ScatterSub", {v, indices, updates}, {}, in_shards).ok());
    CHECK(value_of(v).data<float>()[32] == 28);
    REQUIRE(run_on_state("ScatterUpdate", {v, indices, updates}, {}, in_shards)
                .ok());
    CHECK(value_of(v).data<float>()[32] == 3);
    CHECK(value_of(v).data<float>()[96] == 2);
  }
}

TEST_CASE("ScatterUpdate writes nothing if an index is outside") {
  for (const std::string& op : both_kinds("ScatterUpdate")) {
    const Tensor v = make_variable("v", Tensor::vector<int32_t>({1, 2, 3}));
    expect_error(run_on_state(op, {v, Tensor::of<int32_t>({2, 2}, {0, 1, 3, 2}),
                                   Tensor::of<int32_t>({2, 2}, {7, 7, 7, 7})}),
                 Code::kInvalidArgument, "indices[1,0] = 3 is outside [0, 3)");
    expect_error(run_on_state(op, {v, Tensor::vector<int64_t>({0, -1}),
                                   Tensor::scalar<int32_t>(7)}),
                 Code::kInvalidArgument, "indices[1] = -1 is outside [0, 3)");
    expect_close(value_of(v), Tensor::vector<int32_t>({1, 2, 3}));
  }
  for (const std::string& op : both_kinds("ScatterNdAdd")) {
    const Tensor v = make_variable("v", Tensor::vector<int32_t>({1, 2, 3}));
    const std::vector<Tensor> inputs{v, Tensor::of<int32_t>({2, 1}, {0, 5}),
                                     Tensor::vector<int32_t>({7, 7})};
    expect_error(run_on_state(op, inputs), Code::kInvalidArgument,
                 "indices[1] = [5] does not index into the shape [3]");
    expect_close(value_of(v), Tensor::vector<int32_t>({1, 2, 3}));
    must_run_on_state(op, inputs,
                      {{"bad_indices_policy", std::string("IGNORE")}});
    expect_close(value_of(v), Tensor::vector<int32_t>({8, 2, 3}));
  }
}

// As in TensorFlow 2.21.
TEST_CASE("ResourceScatter ops take a scalar variable as one row") {
  const std::pair<const char*, float> expected[] = {
      {"Add", 7}, {"Sub", -3},   {"Mul", 10},  {"Div", 0.4f},
      {"Min", 2}, {"Max", 5.0f}, {"Update", 5}};
  for (const auto& [what, value] : expected) {
    const Tensor v = make_variable("v", Tensor::scalar(2.0f));
    must_run_on_state(
        fmt::format("ResourceScatter{}", what),
        {v, Tensor::of<int32_t>({1, 1}, {0}), Tensor::scalar(5.0f)});
    expect_close(value_of(v), Tensor::scalar(value));
  }
  const Tensor v = make_variable("v", Tensor::scalar(2.0f));
  must_run_on_state("ResourceScatterAdd",
                    {v, Tensor::vector<int64_t>({0, 0}), Tensor::scalar(1.0f)});
  expect_close(value_of(v), Tensor::scalar(4.0f));
}

TEST_CASE("scatter updates must fit the indices and the variable") {
  const Tensor v = make_variable("v", numbers(3, 2));
  const Tensor indices = Tensor::vector<int32_t>({0, 1});
  expect_error(
      run_on_state("ScatterAdd", {v, indices, Tensor::vector<float>({1, 2})}),
      Code::kInvalidArgument,
      "updates float[2] are not a scalar, and should be [2,2] for indices "
      "int32[2] into variable \"v\"");
  expect_error(
      run_on_state("ScatterNdAdd", {v, Tensor::of<int32_t>({1, 1}, {0}),
                                    Tensor::vector<float>({1, 2})}),
      Code::kInvalidArgument, "updates float[2] do not fit");
  const Tensor scalar = make_variable("s", Tensor::scalar<float>(1));
  expect_error(
      run_on_state("ScatterAdd", {scalar, indices, Tensor::scalar<float>(1)}),
      Code::kInvalidArgument,
      "variable \"s\" of float[] is a scalar, which has no rows");
  expect_error(
      run_on_state("ResourceScatterAdd",
                   {scalar, indices, Tensor::vector<float>({1, 2})}),
      Code::kInvalidArgument,
      "variable \"s\" of float[] is a scalar, and so must updates be, not "
      "float[2]");
  expect_error(run_on_state("ResourceScatterAdd",
                            {scalar, indices, Tensor::scalar<float>(1)}),
               Code::kInvalidArgument, "indices[1] = 1 is outside [0, 1)");
  expect_error(
      run_on_state("ScatterNdAdd", {scalar, Tensor::of<int32_t>({1, 1}, {0}),
                                    Tensor::vector<float>({1})}),
      Code::kInvalidArgument, "which has no slices");
}

TEST_CASE("a variable to be scattered into has a value of the type") {
  const Tensor indices = Tensor::vector<int32_t>({0});
  const Tensor one = Tensor::scalar<float>(1);
  const Tensor empty = make_variable("w", DataType::kFloat, {});
  expect_error(run_on_state("ScatterAdd", {empty, indices, one}),
               Code::kFailedPrecondition,
               "variable \"w\" of float<unknown> is not initialized");
  const Tensor ints = make_variable("ints", Tensor::vector<int32_t>({1}));
  expect_error(run_on_state("ResourceScatterAdd", {ints, indices, one}),
               Code::kInvalidArgument,
               "variable \"ints\" of int32[1] is used as one of float");
}

TEST_CASE("ScatterDiv refuses zero as a divisor, and integers wrap around") {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  const Tensor v = make_variable("v", Tensor::vector<int32_t>({8, kLeast}));
  expect_error(run_on_state("ScatterDiv", {v, Tensor::vector<int32_t>({0, 1}),
                                           Tensor::vector<int32_t>({2, 0})}),
               Code::kInvalidArgument,
               "integer division by zero: updates[1] is 0");
  expect_close(value_of(v), Tensor::vector<int32_t>({8, kLeast}));
  must_run_on_state("ScatterDiv", {v, Tensor::vector<int32_t>({0, 1}),
                                   Tensor::scalar<int32_t>(-1)});
  expect_close(value_of(v), Tensor::vector<int32_t>({-8, kLeast}));
}

TEST_CASE("ResourceScatterNdMax refuses types without an order") {
  const Tensor v =
      make_variable("v", Tensor::vector<std::string>({"a", "b", "c"}));
  expect_error(run_on_state("ResourceScatterNdMax",
                            {v, Tensor::of<int32_t>({1, 1}, {0}),
                             Tensor::vector<std::string>({"x"})}),
               Code::kUnimplemented, "cannot combine elements of type string");
}

TEST_CASE("scatter updates without indices change nothing") {
  const Tensor v = make_variable("v", numbers(3, 2));
  const Tensor none = Tensor::of<int32_t>({0}, {});
  for (const std::string& op : both_kinds("ScatterUpdate")) {
    must_run_on_state(op, {v, none, Tensor::of<float>({0, 2}, {})});
    must_run_on_state(op, {v, none, Tensor::scalar<float>(9)});
  }
  expect_close(value_of(v), numbers(3, 2));
}

}  // namespace tagflow::devices
