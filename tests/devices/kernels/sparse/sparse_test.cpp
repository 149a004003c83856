// Sparse and ragged tensors, compared with TensorFlow's results and errors, and
// our error messages.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/sparse/sparse_inputs.h"
#include "tests/devices/recorded_cases.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

}  // namespace

TEST_CASE("sparse kernels compute and refuse what TensorFlow's do") {
  const RecordedCounts counts = check_recorded_cases("sparse.txt", 2e-3);
  CHECK(counts.ops.size() >= 25);
  CHECK(counts.refused > 40);
}

TEST_CASE("a sparse tensor whose parts do not fit is refused") {
  const Tensor at = places(2, {0, 1, 1, 0});
  expect_error(run_op("SparseReorder", {at, floats({1}), longs({2, 2})}),
               kInvalid, "2 indices for 1 values");
  expect_error(run_op("SparseReorder", {at, floats({1, 2}), longs({2})}),
               kInvalid, "indices of 2 columns do not fit a shape of rank 1");
  expect_error(run_op("SparseReorder", {longs({1}), floats({1}), longs({2})}),
               kInvalid, "indices, must be a matrix");
  expect_error(run_op("SparseReorder", {at, floats({1, 2}), longs({-2, 2})}),
               kInvalid, "-2");
  const int64_t huge = int64_t{1} << 40;
  expect_error(
      run_op("SparseReorder", {at, floats({1, 2}), longs({huge, huge})}),
      kInvalid, "");
}

TEST_CASE("sparse kernels refuse indices outside of the shape") {
  const Tensor out = places(2, {0, 1, 1, 7});
  const std::vector<Tensor> sparse = {out, floats({1, 2}), longs({2, 2})};
  const auto with = [&](std::initializer_list<Tensor> more) {
    std::vector<Tensor> inputs = sparse;
    inputs.insert(inputs.end(), more);
    return inputs;
  };
  const char* text = "indices[1] = [1,7] is out of range";
  expect_error(run_op("SparseReduceSum", with({Tensor::vector<int32_t>({0})})),
               kInvalid, text);
  const Tensor dense = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  expect_error(run_op("SparseTensorDenseAdd", with({dense})), kInvalid, text);
  expect_error(run_op("SparseDenseCwiseMul", with({dense})), kInvalid, text);
  expect_error(run_op("SparseTensorDenseMatMul", with({dense})), kInvalid,
               "a_indices[1,1] = 7 is outside of [0, 2)");
  expect_error(run_op("SparseToDense", {out, longs({2, 2}), floats({1, 2}),
                                        Tensor::scalar(0.0f)}),
               kInvalid, text);
  expect_error(run_op("SparseReshape", {out, longs({2, 2}), longs({4})}),
               kInvalid, text);
  expect_error(
      run_op("SparseFillEmptyRows", {places(2, {5, 0}), floats({1}),
                                     longs({2, 2}), Tensor::scalar(0.0f)}),
      kInvalid, "indices[0] = [5,0] is in none of the 2 rows");
  expect_error(run_op("SparseFillEmptyRowsGrad", {longs({3}), floats({1})}),
               kInvalid, "reverse_index_map[0] = 3 is outside of [0, 1)");
}

TEST_CASE("SparseToDense names elements that are repeated or out of order") {
  const auto dense = [](Tensor at) {
    return run_op("SparseToDense", {std::move(at), longs({3}), floats({1, 2}),
                                    Tensor::scalar(0.0f)});
  };
  expect_error(dense(longs({1, 1})), kInvalid, "indices[1] = [1] is repeated");
  expect_error(dense(longs({2, 1})), kInvalid,
               "indices[1] = [1] is out of order");
}

TEST_CASE("a softmax of a sparse tensor does not depend on its order") {
  const Tensor shape = longs({2, 5});
  expect_close(run_op("SparseSoftmax", {places(2, {0, 4, 1, 2, 0, 1}),
                                        floats({3, 2, 1}), shape}),
               floats({0.8807971f, 1, 0.1192029f}), 1e-6);
}

TEST_CASE("SparseReduceSumSparse gives kept dimensions coordinates of 0") {
  const auto sums = run_op("SparseReduceSumSparse",
                           {places(2, {0, 3, 1, 1, 1, 3}), floats({1, 2, 4}),
                            longs({2, 4}), Tensor::vector<int32_t>({0})},
                           {{"keep_dims", true}});
  REQUIRE_MESSAGE(sums.ok(), sums.status().to_string());
  expect_close((*sums)[0], places(2, {0, 1, 0, 3}));
  expect_close((*sums)[1], floats({2, 5}));
  expect_close((*sums)[2], longs({1, 4}));
}

TEST_CASE("integers in a sparse tensor are not divided by zero") {
  const auto divide = [](int32_t a, int32_t b) {
    return run_op("SparseDenseCwiseDiv",
                  {places(1, {1}), Tensor::vector<int32_t>({a}), longs({2}),
                   Tensor::vector<int32_t>({1, b})});
  };
  expect_error(divide(3, 0), kInvalid, "division by zero at indices[0] = [1]");
  const int32_t least = std::numeric_limits<int32_t>::min();
  expect_close(divide(least, -1), Tensor::vector<int32_t>({least}));
}

TEST_CASE("RaggedRange refuses ranges that do not end") {
  const auto range = [](auto start, auto limit, auto delta) {
    return run_op("RaggedRange", {Tensor::scalar(start), Tensor::scalar(limit),
                                  Tensor::scalar(delta)});
  };
  expect_error(range(0, 3, 0), kInvalid, "delta 0 is 0");
  expect_error(range(0.0f, 1e30f, 1.0f), kInvalid, "range 0 is too long");
  expect_error(range(0.0f, std::nanf(""), 1.0f), kInvalid,
               "range 0 is too long");
  expect_error(run_op("RaggedRange", {longs({1, 2}), longs({1, 2, 3}),
                                      Tensor::scalar(int64_t{1})}),
               kInvalid, "of the same length, not 2 and 3");
  const int64_t most = std::numeric_limits<int64_t>::max();
  expect_error(range(-most, most, int64_t{1}), kInvalid, "too long");
  const auto last = range(most - 1, most, int64_t{3});
  REQUIRE_MESSAGE(last.ok(), last.status().to_string());
  expect_close((*last)[1], longs({most - 1}));
}

TEST_CASE("row splits that do not fit their values are refused") {
  const auto gather = [](Tensor splits, int64_t number, int64_t rank = 1) {
    return run_op(
        "RaggedGather", {std::move(splits), floats({1, 2, 3}), longs({number})},
        {{"PARAMS_RAGGED_RANK", int64_t{1}}, {"OUTPUT_RAGGED_RANK", rank}});
  };
  expect_error(gather(longs({0, 2, 1}), 0), kInvalid, "not sorted");
  expect_error(gather(longs({-1, 2}), 0), kInvalid, "begin with -1");
  expect_error(gather(longs({0, 4}), 0), kInvalid, "point to 4, past the 3");
  expect_error(gather(longs({}), 0), kInvalid, "not a vector of one or more");
  expect_error(gather(longs({0, 3}), 1), kInvalid,
               "indices[0] = 1 is outside of [0, 1)");
  expect_error(gather(longs({0, 3}), 0, 2), kInvalid, "OUTPUT_RAGGED_RANK");
}

}  // namespace tagflow::devices
