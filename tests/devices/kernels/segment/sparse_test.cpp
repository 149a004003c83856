// Sparse segment ops.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/segment/segments.h"

namespace tagflow::devices {
namespace {

TEST_CASE("sparse segments pick rows by index") {
  const std::vector<Tensor> in = {kData, ints({0, 2, 2}), ints({0, 0, 2})};
  const float root = std::sqrt(2.0f);
  expect_close(run_op("SparseSegmentSum", in), rows(3, {6, 8, 0, 0, 5, 6}));
  expect_close(run_op("SparseSegmentMean", in), rows(3, {3, 4, 0, 0, 5, 6}));
  expect_close(run_op("SparseSegmentSqrtN", in),
               rows(3, {6 / root, 8 / root, 0, 0, 5, 6}));
  std::vector<Tensor> sized = in;
  sized.push_back(Tensor::scalar<int32_t>(4));
  expect_close(run_op("SparseSegmentMeanWithNumSegments", sized),
               rows(4, {3, 4, 0, 0, 5, 6, 0, 0}));
  sized[3] = Tensor::scalar<int32_t>(2);
  expect_error(run_op("SparseSegmentSumWithNumSegments", sized),
               Code::kInvalidArgument, "not below num_segments 2");
}

TEST_CASE("sparse segments refuse indices out of range") {
  const auto refused = [](const Tensor& indices, const Tensor& ids,
                          const char* text) {
    expect_error(run_op("SparseSegmentSum", {kData, indices, ids}),
                 Code::kInvalidArgument, text);
  };
  refused(ints({0, 3, 2}), ints({0, 0, 2}), "indices[1] = 3");
  refused(ints({0, -1}), ints({0, 2}), "indices[1] = -1");
  refused(ints({0, 1, 2}), ints({0, 2, 1}), "below");
}

TEST_CASE("the gradient of a sparse segment goes back to its rows") {
  const std::vector<Tensor> in = {kData, ints({0, 2, 2}), ints({0, 0, 2}),
                                  Tensor::scalar<int32_t>(4)};
  expect_close(run_op("SparseSegmentSumGrad", in),
               rows(4, {1, 2, 0, 0, 6, 8, 0, 0}));
  expect_close(run_op("SparseSegmentMeanGrad", in),
               rows(4, {.5, 1, 0, 0, 5.5, 7, 0, 0}));
  const float half = 1 / std::sqrt(2.0f);
  expect_close(run_op("SparseSegmentSqrtNGrad", in),
               rows(4, {half, 2 * half, 0, 0, 5 + half, 6 + 2 * half, 0, 0}));
  std::vector<Tensor> wrong = in;
  wrong[2] = ints({0, 0, 3});
  expect_error(run_op("SparseSegmentSumGrad", wrong), Code::kInvalidArgument,
               "segment_ids[2] = 3");
  wrong = in;
  wrong[3] = Tensor::scalar<int32_t>(2);
  expect_error(run_op("SparseSegmentSumGrad", wrong), Code::kInvalidArgument,
               "indices[1] = 2");
  wrong[3] = Tensor::scalar<int32_t>(-4);
  expect_error(run_op("SparseSegmentSumGrad", wrong), Code::kInvalidArgument,
               "below 0");
}

}  // namespace
}  // namespace tagflow::devices
