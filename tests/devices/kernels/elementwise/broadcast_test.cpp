#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

Tensor ints(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

void expect_axes(std::initializer_list<int32_t> s0,
                 std::initializer_list<int32_t> s1,
                 std::initializer_list<int32_t> r0,
                 std::initializer_list<int32_t> r1) {
  const auto axes = run_op("BroadcastGradientArgs", {ints(s0), ints(s1)});
  REQUIRE_MESSAGE(axes.ok(), axes.status().to_string());
  expect_close((*axes)[0], ints(r0));
  expect_close((*axes)[1], ints(r1));
}

}  // namespace

TEST_CASE("tensors are broadcast to a shape") {
  expect_close(run_op("BroadcastTo", {ints({1, 2}), ints({2, 2})}),
               Tensor::of<int32_t>({2, 2}, {1, 2, 1, 2}));
  expect_close(
      run_op("BroadcastTo",
             {Tensor::of<int32_t>({2, 1}, {1, 2}), ints({2, 2, 3})}),
      Tensor::of<int32_t>({2, 2, 3}, {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
  expect_close(run_op("BroadcastTo", {Tensor::scalar("a"), ints({2})}),
               Tensor::of<std::string>({2}, {"a", "a"}));
  expect_close(run_op("BroadcastTo", {ints({1}), ints({0, 3})}),
               Tensor::of<int32_t>({0, 3}, {}));
  expect_close(
      run_op("BroadcastTo", {ints({1, 2}), Tensor::vector<int64_t>({1, 2})}),
      Tensor::of<int32_t>({1, 2}, {1, 2}));
}

TEST_CASE("shapes that a tensor cannot be broadcast to are refused") {
  const auto refuse = [](Tensor x, Tensor shape, std::string_view text) {
    expect_error(run_op("BroadcastTo", {x, shape}), Code::kInvalidArgument,
                 text);
  };
  refuse(ints({1, 2}), ints({3}), "int32[2] cannot be broadcast to [3]");
  refuse(Tensor::of<int32_t>({1, 2}, {1, 2}), ints({2}),
         "int32[1,2] cannot be broadcast to [2]");
  refuse(ints({1}), ints({-1}), "negative dimension -1");
  refuse(ints({1}), Tensor::of<int32_t>({1, 1}, {2}), "[BroadcastTo]");
  refuse(ints({1}),
         Tensor::vector<int64_t>({int64_t(1) << 40, int64_t(1) << 40}),
         "overflows");
}

TEST_CASE("the axes to sum a gradient over are those broadcast") {
  expect_axes({2, 1, 3}, {3}, {1}, {0, 1});
  expect_axes({2, 1, 3}, {2, 1, 3}, {}, {});
  expect_axes({1, 1}, {1, 2}, {0, 1}, {0});
  expect_axes({1}, {1}, {}, {});
  expect_axes({}, {1, 1}, {0, 1}, {0, 1});
  expect_axes({2, 3, 1}, {}, {2}, {0, 1, 2});
  expect_axes({0, 1}, {1, 5}, {1}, {0});
}

TEST_CASE("BroadcastGradientArgs refuses shapes that do not fit") {
  expect_error(run_op("BroadcastGradientArgs", {ints({2, 3}), ints({2, 4})}),
               Code::kInvalidArgument, "incompatible shapes: [2,3] and [2,4]");
  expect_error(
      run_op("BroadcastGradientArgs", {Tensor::scalar(1), ints({2, 4})}),
      Code::kInvalidArgument, "[BroadcastGradientArgs]");
}

}  // namespace tagflow::devices
