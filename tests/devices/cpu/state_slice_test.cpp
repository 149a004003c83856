#include <doctest/doctest.h>

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

TEST_CASE("what is assigned to a slice has its shape") {
  const Tensor v = make_variable("v", Tensor::vector<float>({1, 2, 3}));
  for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"}) {
    expect_error(
        run_on_state(op, slice_of(v, Tensor::vector<float>({1, 2, 3}))),
        Code::kInvalidArgument, "the value is float[3], the slice is [2]");
    expect_error(run_on_state(op, slice_of(v, Tensor::scalar<float>(1))),
                 Code::kInvalidArgument, "the value is float[]");
  }
}

}  // namespace tagflow::devices
