#include <doctest/doctest.h>

#include <algorithm>

#include "tests/devices/state_fixture.h"

namespace tagflow::devices {

namespace {

std::vector<Tensor> slice_of(const Tensor& v, const Tensor& value) {
  return {v, Tensor::vector<int32_t>({1}), Tensor::vector<int32_t>({3}),
          Tensor::vector<int32_t>({1}), value};
}

}  // namespace

TEST_CASE("a slice is assigned in place, but not under a reader's eyes") {
  for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"}) {
    const Tensor v =
        make_variable("v", Tensor::vector<double>({1, 2, 3, 4, 5, 6, 7, 8, 9}));
    const Tensor before = value_of(v);
    must_run_on_state(op, slice_of(v, Tensor::vector<double>({-1, -2})));
    expect_close(before, Tensor::vector<double>({1, 2, 3, 4, 5, 6, 7, 8, 9}));
    const Tensor after = Tensor::vector<double>({1, -1, -2, 4, 5, 6, 7, 8, 9});
    expect_close(value_of(v), after);
    const void* buffer = value_of(v).raw();
    must_run_on_state(op, slice_of(v, Tensor::vector<double>({2, 3})));
    CHECK(value_of(v).raw() == buffer);
  }
}

TEST_CASE("StridedSliceAssign takes a value of the slice's shape, or one") {
  for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"}) {
    const Tensor v = make_variable("v", Tensor::vector<float>({1, 2, 3}));
    expect_error(
        run_on_state(op, slice_of(v, Tensor::vector<float>({1, 2, 3}))),
        Code::kInvalidArgument, "the value is float[3], the slice is [2]");
    expect_error(
        run_on_state(op, slice_of(v, Tensor::make(DataType::kFloat, {1, 2}))),
        Code::kInvalidArgument, "the value is float[1,2]");
    must_run_on_state(op, slice_of(v, Tensor::scalar<float>(7)));
    expect_close(value_of(v), Tensor::vector<float>({1, 7, 7}));
    // Rows 1 and 2 of a matrix.
    Tensor matrix = Tensor::make(DataType::kFloat, {3, 2});
    std::ranges::fill(matrix.mutable_flat<float>(), 0.0f);
    const Tensor m = make_variable("m", matrix);
    must_run_on_state(op, slice_of(m, Tensor::vector<float>({4, 5})));
    const float rows[] = {0, 0, 4, 5, 4, 5};
    CHECK(std::ranges::equal(value_of(m).flat<float>(), rows));
    Tensor column = Tensor::make(DataType::kFloat, {2, 1});
    column.mutable_flat<float>()[0] = 8;
    column.mutable_flat<float>()[1] = 9;
    must_run_on_state(op, slice_of(m, column));
    const float columns[] = {0, 0, 8, 8, 9, 9};
    CAPTURE(value_of(m).to_string());
    CHECK(std::ranges::equal(value_of(m).flat<float>(), columns));
  }
}

}  // namespace tagflow::devices
