// Rules of array ops that put elements into a tensor.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

const AttrMap kIgnore = {{"bad_indices_policy", "IGNORE"}};

}  // namespace

TEST_CASE("sums into a tensor have gradients, if indices repeat") {
  const Tensor x = values({4, 2}), updates = values({3, 2});
  const Tensor rows = Tensor::of<int32_t>({3, 1}, {2, 0, 2});
  check_squares(outputs_of("ScatterNd", 1, {rows, {4, 2}}, {0}), {updates});
  check_squares(outputs_of("ScatterNd", 1,
                           {Tensor::of<int32_t>({3, 1}, {2, 7, 2}), {4, 2}},
                           {0}, kIgnore),
                {updates});
  for (const char* op :
       {"TensorScatterAdd", "TensorScatterSub", "ScatterNdNonAliasingAdd"})
    check_squares(
        [=](const graph::Scope& s, const graph::Outputs& xs) {
          return s.op(op, {xs[0], rows, xs[1]});
        },
        {x, updates});
}

TEST_CASE("TensorScatterUpdate gives its gradient to the last update") {
  const auto update = [](Tensor indices, AttrMap policy = {}) -> Function {
    return [=](const graph::Scope& s, const graph::Outputs& x) {
      return s.op("TensorScatterUpdate", {x[0], indices, x[1]}, policy);
    };
  };
  const Tensor x = values({4, 2});
  check_squares(update(Tensor::of<int32_t>({3, 1}, {2, 0, 2})),
                {x, values({3, 2})});
  check_squares(
      update(Tensor::of<int64_t>({2, 2, 2}, {2, 1, 3, 0, 2, 1, 2, 0})),
      {x, values({2, 2})});
  check_squares(update(Tensor::of<uint16_t>({1, 1}, {2})), {x, values({1, 2})});
  check_squares(update(Tensor::vector<int32_t>({2})), {x, values({2})});
  check_squares(update(Tensor::of<int32_t>({3, 1}, {2, 9, 2}), kIgnore),
                {x, values({3, 2})});
}

TEST_CASE("TensorScatterMax and TensorScatterMin have gradients") {
  const Tensor rows = Tensor::of<int32_t>({3, 1}, {2, 0, 2});
  for (const char* op : {"TensorScatterMax", "TensorScatterMin"}) {
    const auto extreme = [=](const graph::Scope& s, const graph::Outputs& x) {
      return s.op(op, {x[0], rows, x[1]});
    };
    check_squares(extreme, {values({4, 2}), values({3, 2})});
    const std::vector<Tensor> shares = gradients_of(
        extreme,
        {Tensor::vector<double>({1, 2, 3}), Tensor::vector<double>({3, 1, 3})});
    CHECK(identical(shares[0], Tensor::vector<double>({0.5, 1, 1. / 3})));
    CHECK(identical(shares[1], Tensor::vector<double>({1. / 3, 0.5, 1. / 3})));
  }
}

TEST_CASE("stitched rows have gradients where they are the last") {
  const auto stitch = [](std::string op, std::vector<Tensor> indices) {
    return
        [=](const graph::Scope& s, const graph::Outputs& x) -> graph::Outputs {
          graph::Inputs inputs;
          for (const Tensor& each : indices) inputs.add(each);
          return s.op(op, inputs.add(x));
        };
  };
  const Tensor scalar = Tensor::scalar<int32_t>(1);
  const Tensor matrix = Tensor::of<int32_t>({2, 2}, {4, 1, 0, 4});
  for (const char* op : {"DynamicStitch", "ParallelDynamicStitch"}) {
    check_squares(stitch(op, {scalar, matrix}),
                  {values({2}), values({2, 2, 2})});
    check_squares(stitch(op, {matrix, scalar}), {values({2, 2}), values({})});
    check_squares(stitch(op, {scalar}), {values({3})});
  }
}

TEST_CASE("rows replaced or added have gradients") {
  // Indices count modulo the number of rows.
  for (const char* op : {"InplaceUpdate", "InplaceAdd", "InplaceSub"})
    check_squares(
        [=](const graph::Scope& s, const graph::Outputs& x) {
          return s.op(op, {x[0], {1, -1, 4}, x[1]});
        },
        {values({3, 2}), values({3, 2})});
}
