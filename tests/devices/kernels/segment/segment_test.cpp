// Sorted and unsorted segment ops.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "graph/float16.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/kernels/segment/segments.h"

namespace tagflow::devices {
namespace {

TEST_CASE("sorted segments are reduced, gaps hold the value of nothing") {
  const Tensor ids = ints({0, 0, 3});
  const auto run = [&](const char* op) { return run_op(op, {kData, ids}); };
  expect_close(run("SegmentSum"), rows(4, {4, 6, 0, 0, 0, 0, 5, 6}));
  expect_close(run("SegmentMean"), rows(4, {2, 3, 0, 0, 0, 0, 5, 6}));
  expect_close(run("SegmentProd"), rows(4, {3, 8, 1, 1, 1, 1, 5, 6}));
  expect_close(run("SegmentMax"), rows(4, {3, 4, 0, 0, 0, 0, 5, 6}));
  expect_close(run("SegmentMin"), rows(4, {1, 2, 0, 0, 0, 0, 5, 6}));
}

TEST_CASE("segments of integers and complex numbers keep their type") {
  expect_close(run_op("SegmentMean", {Tensor::vector<int64_t>({-1, -2, 7}),
                                      Tensor::vector<int64_t>({0, 0, 1})}),
               Tensor::vector<int64_t>({-1, 7}));
  expect_close(
      run_op("SegmentSum",
             {Tensor::vector<Complex64>({{1, 2}, {3, 4}}), ints({0, 0})}),
      Tensor::vector<Complex64>({{4, 6}}));
}

TEST_CASE("segment sums reduce wide rows in all their columns") {
  Tensor data = Tensor::make(DataType::kDouble, {4, 600});
  for (int64_t i = 0; i < data.num_elements(); ++i)
    data.mutable_data<double>()[i] = double(i);
  const auto sum = run_op("SegmentSum", {data, ints({0, 0, 1, 1})});
  const auto same = run_op("UnsortedSegmentSum", {data, ints({0, 0, 1, 1}),
                                                  Tensor::scalar<int32_t>(2)});
  REQUIRE(sum.ok());
  for (int64_t i = 0; i < 600; ++i)
    REQUIRE((*sum)[0].data<double>()[600 + i] == double(2 * i + 5 * 600));
  expect_close(same, (*sum)[0]);
}

TEST_CASE("segment sums take data without rows") {
  expect_close(
      run_op("SegmentSum", {Tensor::make(DataType::kFloat, {0, 2}), ints({})}),
      Tensor::make(DataType::kFloat, {0, 2}));
  expect_close(
      run_op("UnsortedSegmentSum", {Tensor::make(DataType::kFloat, {0, 2}),
                                    ints({}), Tensor::scalar<int32_t>(2)}),
      rows(2, {0, 0, 0, 0}));
  // However large they would be.
  constexpr int64_t kMany = int64_t{1} << 40;
  const Tensor none = Tensor::make(DataType::kFloat, {0, kMany, kMany});
  expect_close(run_op("SegmentSum", {none, ints({})}), none);
}

TEST_CASE("SegmentSum refuses ids that are unsorted, negative or too few") {
  const auto refused = [](const Tensor& data, const Tensor& ids,
                          const char* text) {
    expect_error(run_op("SegmentSum", {data, ids}), Code::kInvalidArgument,
                 text);
  };
  refused(kData, ints({0, 2, 1}), "below the 2 before");
  refused(kData, ints({-1, 2, 3}), "negative");
  refused(kData, ints({0, 2}), "2 segment_ids for 3 rows");
  refused(kData, Tensor::of<int32_t>({1, 3}, {0, 1, 2}), "not a vector");
  refused(Tensor::scalar(1.0f), ints({0}), "scalar");
  refused(Tensor::vector<float>({1}),
          Tensor::vector<int64_t>({std::numeric_limits<int64_t>::max()}),
          "too large");
}

TEST_CASE("a segment id beyond memory is an error, not an abort") {
  const auto result =
      run_op("SegmentSum", {Tensor::vector<float>({1}),
                            Tensor::vector<int64_t>({int64_t(1) << 60})});
  REQUIRE(!result.ok());
}

TEST_CASE("unsorted segments drop negative ids and fill what is empty") {
  const auto run = [&](const char* op) {
    return run_op(op, {kData, ints({2, -1, 2}), Tensor::scalar<int64_t>(3)});
  };
  const float low = std::numeric_limits<float>::lowest();
  const float high = std::numeric_limits<float>::max();
  expect_close(run("UnsortedSegmentSum"), rows(3, {0, 0, 0, 0, 6, 8}));
  expect_close(run("UnsortedSegmentProd"), rows(3, {1, 1, 1, 1, 5, 12}));
  expect_close(run("UnsortedSegmentMax"), rows(3, {low, low, low, low, 5, 6}));
  expect_close(run("UnsortedSegmentMin"),
               rows(3, {high, high, high, high, 1, 2}));
}

// Two segments, the first one empty, of one row {2}.
template <class T>
void check_empty_segment(T low, T high) {
  const auto run = [](const char* op) {
    return run_op(op, {Tensor::of<T>({1}, {T(2)}), ints({1}),
                       Tensor::scalar<int32_t>(2)});
  };
  const auto both = [](T empty) { return Tensor::of<T>({2}, {empty, T(2)}); };
  expect_close(run("UnsortedSegmentSum"), both(T(0)));
  expect_close(run("UnsortedSegmentProd"), both(T(1)));
  expect_close(run("UnsortedSegmentMax"), both(low));
  expect_close(run("UnsortedSegmentMin"), both(high));
}

TEST_CASE("an empty segment has the value of its op and type") {
  check_empty_segment<Half>(Eigen::NumTraits<Half>::lowest(),
                            Eigen::NumTraits<Half>::highest());
  check_empty_segment<BFloat16>(Eigen::NumTraits<BFloat16>::lowest(),
                                Eigen::NumTraits<BFloat16>::highest());
  check_empty_segment<int8_t>(-128, 127);
  check_empty_segment<uint16_t>(0, 65535);
  expect_close(
      run_op("SegmentProd", {Tensor::vector<Complex64>({{0, 2}}), ints({1})}),
      Tensor::vector<Complex64>({{1, 0}, {0, 2}}));
  expect_close(
      run_op("SegmentProd", {Tensor::of<Half>({1}, {Half(2.f)}), ints({1})}),
      Tensor::of<Half>({2}, {Half(1.f), Half(2.f)}));
}

TEST_CASE("unsorted segments take ids of several dimensions or none") {
  const Tensor two = Tensor::scalar<int32_t>(2);
  expect_close(
      run_op("UnsortedSegmentSum",
             {kData, Tensor::of<int32_t>({3, 2}, {0, 1, 0, 1, 1, 1}), two}),
      Tensor::vector<float>({4, 17}));
  expect_close(run_op("UnsortedSegmentSum", {Tensor::vector<float>({1, 2}),
                                             Tensor::scalar<int32_t>(1), two}),
               rows(2, {0, 0, 1, 2}));
}

TEST_CASE("16-bit floats of a segment are summed in float") {
  Tensor ones = Tensor::make(DataType::kBFloat16, {600});
  for (BFloat16& value : ones.mutable_flat<BFloat16>()) value = BFloat16(1.f);
  Tensor ids = Tensor::make(DataType::kInt32, {600});
  std::fill_n(ids.mutable_data<int32_t>(), 600, 0);
  const Tensor expected = Tensor::vector<BFloat16>({BFloat16(600.f)});
  expect_close(
      run_op("UnsortedSegmentSum", {ones, ids, Tensor::scalar<int32_t>(1)}),
      expected);
  expect_close(run_op("SegmentSum", {ones, ids}), expected);
}

TEST_CASE("unsorted segments out of range or of other shapes are refused") {
  const auto refused = [](const Tensor& ids, const Tensor& count,
                          const char* text) {
    expect_error(run_op("UnsortedSegmentSum", {kData, ids, count}),
                 Code::kInvalidArgument, text);
  };
  const Tensor two = Tensor::scalar<int32_t>(2);
  refused(ints({0, 2, 1}), two, "segment_ids[1] = 2 is out of range [0, 2)");
  refused(ints({0, 1}), two, "does not begin");
  refused(Tensor::of<int32_t>({1, 1, 1}, {0}), two, "does not begin");
  refused(ints({0, 0, 0}), Tensor::scalar<int32_t>(-1), "below 0");
  refused(ints({0, 0, 0}), ints({2}), "not a scalar");
}

}  // namespace
}  // namespace tagflow::devices
