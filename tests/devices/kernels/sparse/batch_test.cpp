// Batches of sparse tensors: as strings, compared with TensorFlow's; as
// variants; and in maps.
#include <doctest/doctest.h>

#include "devices/state/resource_manager.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/sparse/sparse_inputs.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

// [[_ 1 2] [_ _ _] [3 _ _]]
std::vector<Tensor> three_rows() {
  return {places(2, {0, 1, 0, 2, 2, 0}), floats({1, 2, 3}), longs({3, 3})};
}

const AttrMap kFloats = {{"dtype", DataType::kFloat}};

// Runs kernels on the state of one session.
struct Maps {
  Maps() { step.state = &state; }

  Result<Outputs> run(std::string_view op, const std::vector<Tensor>& inputs,
                      AttrMap attrs = {}) {
    attrs.emplace("shared_name", "m");
    return run_op(op, inputs, std::move(attrs), &step);
  }
  Result<Outputs> add(const std::vector<Tensor>& sparse) {
    return run("AddSparseToTensorsMap", sparse);
  }
  Result<Outputs> take(std::initializer_list<int64_t> numbers) {
    return run("TakeManySparseFromTensorsMap", {longs(numbers)}, kFloats);
  }

  ResourceManager state;
  StepInfo step;
};

void expect_batch(const Result<Outputs>& result,
                  const std::vector<Tensor>& expected) {
  REQUIRE(result.ok());
  REQUIRE(result->size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    expect_close((*result)[i], expected[i]);
}

}  // namespace

TEST_CASE("sparse tensors become the strings that TensorFlow's become") {
  const RecordedCounts counts = check_recorded_cases("sparse_batches.txt");
  CHECK(counts.ops.size() == 4);
  CHECK(counts.refused > 40);
}

TEST_CASE("a batch of sparse tensors passes through variants") {
  const AttrMap variants = {{"out_type", DataType::kVariant}};
  const auto rows = run_op("SerializeManySparse", three_rows(), variants);
  REQUIRE(rows.ok());
  expect_batch(run_op("DeserializeSparse", *rows, kFloats), three_rows());
  const auto one = run_op("SerializeSparse", three_rows(), variants);
  REQUIRE(one.ok());
  expect_batch(run_op("DeserializeSparse", *one, kFloats), three_rows());
  expect_error(run_op("DeserializeSparse", *one, {{"dtype", DataType::kInt32}}),
               kInvalid, "SparseTensor[0] has values of float, not of int32");
  Tensor empty = Tensor::make(DataType::kVariant, {3});
  expect_error(run_op("DeserializeSparse", {empty}, kFloats), kInvalid,
               "element 0 is an empty variant");
}

TEST_CASE("rows of a sparse tensor may be in any order") {
  const auto rows =
      run_op("SerializeManySparse",
             {places(2, {1, 1, 0, 2, 1, 0}), floats({1, 2, 3}), longs({2, 3})});
  REQUIRE(rows.ok());
  expect_batch(
      run_op("DeserializeManySparse", *rows, kFloats),
      {places(2, {0, 2, 1, 1, 1, 0}), floats({2, 1, 3}), longs({2, 3})});
}

TEST_CASE("strings that are no sparse tensors are refused") {
  const auto run = [](std::initializer_list<std::string> texts) {
    return run_op("DeserializeSparse", {Tensor::vector<std::string>(texts)},
                  kFloats);
  };
  expect_error(run({"a", "b", "c"}), kInvalid, "1 bytes are not a TensorProto");
  const auto one = run_op("SerializeSparse", three_rows());
  REQUIRE(one.ok());
  const auto* const parts = (*one)[0].data<std::string>();
  expect_error(run({parts[1], parts[1], parts[2]}), kInvalid,
               "the indices of SparseTensor[0] are float[3]");
  expect_error(run({parts[0], parts[0], parts[2]}), kInvalid,
               "the values of SparseTensor[0] are int64[3,2]");
  expect_error(run({parts[0], parts[1], parts[1]}), kInvalid,
               "the shape of SparseTensor[0] is float[3]");
  expect_error(run({parts[0], parts[1]}), kInvalid,
               "the last dimension of the input must be 3");
}

TEST_CASE("a sparse tensor with more rows than the limit is refused") {
  const std::vector<Tensor> huge = {places(2, {0, 0}), floats({1}),
                                    longs({int64_t{1} << 40, 1})};
  expect_error(run_op("SerializeManySparse", huge), Code::kResourceExhausted,
               "1099511627776 rows");
  Maps maps;
  expect_error(maps.run("AddManySparseToTensorsMap", huge),
               Code::kResourceExhausted, "1099511627776 rows");
}

TEST_CASE("sparse tensors of a map are taken once") {
  Maps maps;
  const auto first = maps.add(three_rows());
  const auto second = maps.add({places(2, {4, 0}), floats({9}), longs({5, 1})});
  expect_close(first, Tensor::scalar<int64_t>(0));
  expect_close(second, Tensor::scalar<int64_t>(1));
  expect_error(maps.take({0, 7}), kInvalid, "has no sparse tensor of number 7");
  expect_error(maps.take({1, 1}), kInvalid,
               "has not that many sparse tensors of these numbers");
  expect_error(maps.take({}), kInvalid, "at least 1 SparseTensor");
  expect_batch(maps.take({1, 0}),
               {places(3, {0, 4, 0, 1, 0, 1, 1, 0, 2, 1, 2, 0}),
                floats({9, 1, 2, 3}), longs({2, 5, 3})});
  expect_error(maps.take({0}), kInvalid, "has no sparse tensor of number 0");
}

TEST_CASE("a map takes the rows of a sparse tensor, and gives them back") {
  Maps maps;
  const auto numbers = maps.run("AddManySparseToTensorsMap", three_rows());
  expect_close(numbers, longs({0, 1, 2}));
  expect_batch(maps.take({0, 1, 2}), three_rows());
}

TEST_CASE("a map refuses tensors of another type and of other ranks") {
  Maps maps;
  REQUIRE(maps.add(three_rows()).ok());
  expect_error(maps.add({places(2, {0, 0}), longs({1}), longs({1, 1})}),
               kInvalid, "is not of int64");
  expect_error(maps.add({places(2, {0, 0}), floats({1, 2}), longs({1, 1})}),
               kInvalid, "1 indices for 2 values");
  REQUIRE(maps.add({places(1, {0}), floats({1}), longs({1})}).ok());
  expect_error(maps.take({0, 1}), kInvalid,
               "SparseTensor[1] is of rank 1, 2 in the batch, and those before "
               "it of 2, 3");
}

TEST_CASE("a map that is reset has nothing left") {
  Maps maps;
  REQUIRE(maps.add(three_rows()).ok());
  maps.state.reset(std::vector<std::string>{""});
  expect_error(maps.take({0}), kInvalid, "has no sparse tensor of number 0");
}

}  // namespace tagflow::devices
