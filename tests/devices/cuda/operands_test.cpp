// How launches are planned, which happens on the host.
#include "devices/cuda/operands.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "devices/broadcast.h"
#include "devices/cuda/cuda_kernel.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/stream/launching.h"

namespace tagflow::devices {

namespace {

// Where operand k is read for element `index` of the result, as kernels do.
int64_t position(const cuda::ElementwiseArgs& args, int k, int64_t index) {
  if (args.loops == 0) return index * args.strides[k][0];
  int64_t at = 0;
  for (int d = args.loops - 1; d >= 0; --d) {
    at += index % args.counts[d] * args.strides[k][d];
    index /= args.counts[d];
  }
  return at;
}

// The position by the rules of broadcasting.
int64_t expected_position(const Shape& shape, const Shape& result,
                          int64_t index) {
  int64_t at = 0, stride = 1;
  for (int from_end = 1; from_end <= result.rank(); ++from_end) {
    const int64_t size = result.dim(result.rank() - from_end);
    const int64_t in_dim = index % size;
    index /= size;
    if (from_end > shape.rank()) continue;
    const int64_t own = shape.dim(shape.rank() - from_end);
    if (own != 1) at += in_dim * stride;
    stride *= own;
  }
  return at;
}

struct AnyContext {
  Launch launch{[](KernelContext&) { return Status(); }};
  StepInfo step;
  Tag tag;
  KernelContext context{launch.node, launch.inputs, launch.outputs, &step,
                        &tag};
};

}  // namespace

TEST_CASE("loops for a GPU read the operands that broadcasting names") {
  const AnyContext any;
  CHECK(rc::check([&](const std::vector<uint8_t>& choices) {
    Shape a, b, result;
    for (size_t i = 0; i < std::min<size_t>(choices.size(), 6); ++i) {
      const int64_t size = 2 + choices[i] % 3;
      const int kind = choices[i] / 3 % 4;
      a.add_dim(kind == 1 || kind == 3 ? 1 : size);
      b.add_dim(kind == 2 || kind == 3 ? 1 : size);
      result.add_dim(kind == 3 ? 1 : size);
    }
    // A shape that lacks leading dimensions broadcasts too.
    while (b.rank() > 0 && b.dim(0) == 1) b.remove_dim(0);
    const auto args = broadcast_args(any.context, result, {&a, &b});
    RC_ASSERT(args.ok());
    RC_ASSERT(args->total == result.num_elements());
    for (int64_t i = 0; i < args->total; ++i) {
      RC_ASSERT(position(*args, 0, i) == expected_position(a, result, i));
      RC_ASSERT(position(*args, 1, i) == expected_position(b, result, i));
    }
  }));
}

TEST_CASE("a broadcast of more loops than kernels have is refused") {
  const AnyContext any;
  Shape a, b, result;
  for (int i = 0; i < 9; ++i) {
    a.add_dim(i % 2 == 0 ? 2 : 1);
    b.add_dim(i % 2 == 0 ? 1 : 2);
    result.add_dim(2);
  }
  expect_error(broadcast_args(any.context, result, {&a, &b}),
               Code::kUnimplemented,
               "[NoOp] broadcasting to [2,2,2,2,2,2,2,2,2] takes 9 nested "
               "loops, a GPU's kernels support 8");
}

TEST_CASE("a small operand's value is part of the launch") {
  const Tensor scalar = Tensor::scalar(2.5F);
  CHECK(fits_operand(scalar));
  const cuda::Operand operand = operand_of(scalar);
  CHECK(operand.data == nullptr);
  float value = 0;
  std::memcpy(&value, operand.value, sizeof(value));
  CHECK(value == 2.5F);
  CHECK_FALSE(fits_operand(floats(7)));
  CHECK_FALSE(fits_operand(Tensor::scalar("text")));
}

TEST_CASE("small values for a GPU are few integers, or held in a token") {
  CHECK(is_small_value(Tensor::scalar(1.0F)));
  CHECK(is_small_value(Tensor::make(DataType::kInt32, {64})));
  CHECK_FALSE(is_small_value(Tensor::make(DataType::kInt32, {65})));
  CHECK_FALSE(is_small_value(floats(10)));
  CHECK_FALSE(is_small_value(Tensor()));
}

TEST_CASE("inputs that steer are counted from either end") {
  using Flags = std::vector<bool>;
  CHECK(Steering{.inputs = {0, -1}}.of(3) == Flags{true, false, true});
  CHECK(Steering{.inputs = {5}}.of(2) == Flags{false, false});
  CHECK(Steering::everything().of(2) == Flags{true, true});
}

TEST_CASE("a kernel for GPUs is not computed where it stands") {
  graph::Graph graph;
  graph::Node* input =
      *graph.add("x", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  graph::Node* node = *graph.add("op", "Exp", {{{input, 0}}}, {});
  const auto kernel = KernelRegistry::global().make(*node, "GPU");
  REQUIRE_MESSAGE(kernel.ok(), kernel.status().to_string());
  std::vector<Tensor> inputs = {floats(10)}, outputs(1);
  const StepInfo step;
  const Tag tag;
  KernelContext context(node, inputs, outputs, &step, &tag);
  expect_error((*kernel)->compute(context), Code::kInternal,
               "[Exp] is launched, not computed");
  // A scalar in a token needs no launch.
  const bool has_function = (*kernel)->scalar_function() != nullptr;
  CHECK(has_function);
}

TEST_CASE("a cast that truncates, as transfers need it, has a kernel") {
  graph::Graph graph;
  graph::Node* input =
      *graph.add("x", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  graph::Node* node =
      *graph.add("op", "Cast", {{{input, 0}}},
                 {{"DstT", DataType::kBFloat16}, {"Truncate", true}});
  CHECK(KernelRegistry::global().make(*node, "GPU").ok());
}

}  // namespace tagflow::devices
