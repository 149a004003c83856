// Convolutions in float, which a library computes if it is installed, compared
// with those in double, which our own loops compute. All numbers are small
// integers, whose sums are exact in any order.
#include <doctest/doctest.h>

#include <random>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/small_numbers.h"

namespace tagflow::devices {
namespace {

using Ints = std::vector<int64_t>;

Tensor as_float(const Tensor& tensor) {
  Tensor result = Tensor::make(DataType::kFloat, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    result.mutable_data<float>()[i] = float(tensor.data<double>()[i]);
  return result;
}

Tensor sizes_of(const Shape& shape) {
  Tensor sizes = Tensor::make(DataType::kInt32, {shape.rank()});
  for (int i = 0; i < shape.rank(); ++i)
    sizes.mutable_data<int32_t>()[i] = int32_t(shape.dim(i));
  return sizes;
}

struct Case {
  Shape input, filter;
  int64_t stride = 1, dilation = 1;
  Ints paddings = {};  // in front and behind, by dimension; empty: SAME
};

void check(const Case& c) {
  INFO(c.input.to_string(), " * ", c.filter.to_string(), ", stride ", c.stride,
       ", dilation ", c.dilation, ", ", c.paddings.size(), " paddings");
  const int rank = c.input.rank();
  const bool is_flat = rank == 4;
  Ints strides(size_t(rank), c.stride), dilations(size_t(rank), c.dilation);
  for (Ints* list : {&strides, &dilations}) list->front() = list->back() = 1;
  AttrMap attrs{{"strides", strides},
                {"dilations", dilations},
                {"padding", c.paddings.empty() ? "SAME" : "EXPLICIT"}};
  if (!c.paddings.empty()) attrs["explicit_paddings"] = c.paddings;
  const std::string op = is_flat ? "Conv2D" : "Conv3D";
  const auto check_op = [&](const std::string& name, auto&& inputs_of) {
    const auto expected = run_op(name, inputs_of(DataType::kDouble), attrs);
    REQUIRE_MESSAGE(expected.ok(), expected.status().to_string());
    expect_close(run_op(name, inputs_of(DataType::kFloat), attrs),
                 as_float((*expected)[0]));
    return (*expected)[0].shape();
  };
  using Inputs = std::vector<Tensor>;
  const Shape output = check_op(op, [&](DataType t) {
    return Inputs{numbers(t, c.input, 1), numbers(t, c.filter, 4)};
  });
  const std::string suffix = is_flat ? "" : "V2";
  check_op(op + "BackpropInput" + suffix, [&](DataType t) {
    return Inputs{sizes_of(c.input), numbers(t, c.filter, 4),
                  numbers(t, output, 2)};
  });
  check_op(op + "BackpropFilter" + suffix, [&](DataType t) {
    return Inputs{numbers(t, c.input, 1), sizes_of(c.filter),
                  numbers(t, output, 2)};
  });
}

TEST_CASE("Convolutions in float agree with our own loops at any geometry") {
  std::mt19937 random(7);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int i = 0; i < 40; ++i) {
    const int64_t groups = i % 5 == 4 ? draw(2, 3) : 1;
    const int64_t in = draw(1, 20), out = draw(1, 40);
    const int64_t height = draw(10, 17), width = draw(10, 17);
    Case c{{draw(1, 9), height, width, groups * in},
           {draw(1, 4), draw(1, 4), in, groups * out},
           draw(1, 3),
           draw(1, 3)};
    if (i % 3 == 0)
      c.paddings = {0, 0, draw(0, 3), draw(0, 3), draw(0, 3), draw(0, 3), 0, 0};
    check(c);
  }
}

TEST_CASE("Convolutions of many images agree, also where parts are uneven") {
  check({{37, 12, 12, 16}, {3, 3, 16, 24}});
  check({{64, 14, 14, 1}, {3, 3, 1, 32}});
  check({{19, 16, 16, 24}, {1, 1, 24, 48}});
  check({{3, 24, 24, 32}, {3, 3, 32, 64}, 2});
}

TEST_CASE("Convolutions in float agree in three dimensions") {
  check({{2, 6, 7, 8, 4}, {2, 3, 2, 4, 16}});
  check({{3, 7, 8, 9, 5}, {3, 3, 3, 5, 7}, 2});
}

}  // namespace
}  // namespace tagflow::devices
