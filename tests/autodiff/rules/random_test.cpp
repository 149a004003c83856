// Rules of random ops.
#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

TEST_CASE("the gradients of samples have the shapes of the parameters") {
  const Tensor seed = Tensor::vector<int64_t>({5, 8});
  const std::vector<Tensor> slopes = gradients_of(
      [seed](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("StatelessParameterizedTruncatedNormal",
                    {{2, 3}, seed, x[0], x[1], x[2], x[3]});
      },
      {values({3}), values({2, 1}, 1, 2), values({}, -2, -1),
       values({1}, 1, 2)});
  CHECK(slopes[0].shape() == Shape({3}));
  CHECK(slopes[1].shape() == Shape({2, 1}));
  CHECK(slopes[2].shape() == Shape({}));
  CHECK(slopes[3].shape() == Shape({1}));
}

TEST_CASE("moving and scaling a truncated normal distribution moves samples") {
  // If mean and limits move together, samples move as much; if stddev and
  // the limits' distances from the mean grow alike, so do those of samples.
  for (const char* op : {"ParameterizedTruncatedNormal",
                         "StatelessParameterizedTruncatedNormal"}) {
    const bool is_stateless = op[0] == 'S';
    graph::Graph graph;
    const graph::Scope s(graph);
    const Output mean = ops::constant(s, 0.5), stddev = ops::constant(s, 2.);
    const Output low = ops::constant(s, 1.), high = ops::constant(s, 3.5);
    graph::Inputs inputs = {{4, 3}};
    if (is_stateless) inputs.add(Tensor::vector<int64_t>({5, 8}));
    inputs.add({mean, stddev, low, high});
    const Output x =
        s.op(op, inputs, is_stateless ? AttrMap{} : AttrMap{{"seed", 3}});
    const graph::Outputs slopes =
        dense_gradients(s, {x}, {mean, stddev, low, high});
    const Output moved = ops::add_n(s, {slopes[0], slopes[2], slopes[3]});
    const Output scaled =
        ops::add_n(s, {ops::mul(s, slopes[1], stddev),
                       ops::mul(s, slopes[2], ops::sub(s, low, mean)),
                       ops::mul(s, slopes[3], ops::sub(s, high, mean))});
    const Output distances = ops::reduce_sum(s, ops::sub(s, x, mean));
    const auto results =
        numbers(s, {moved, scaled, distances, slopes[2], slopes[3]});
    CHECK(results[0] == doctest::Approx(12));
    CHECK(results[1] == doctest::Approx(results[2]));
    CHECK(results[3] > 1);
    CHECK(results[4] > 1);
  }
}

TEST_CASE("gamma samples have gradients by alpha") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output alpha = ops::constant(s, {0.7, 3.});
  const Tensor seed = Tensor::vector<int64_t>({5, 8});
  const Output y = s.op("RandomGamma", {{3}, alpha}, {{"seed", 3}});
  const Output z = s.op("StatelessRandomGammaV2", {{3, 2}, seed, alpha});
  const Output grad = dense_gradients(s, {y, z}, {alpha})[0];
  const Output slopes = ops::add(s, s.op("RandomGammaGrad", {alpha, y}),
                                 s.op("RandomGammaGrad", {alpha, z}));
  const auto results = evaluate(s, {grad, ops::reduce_sum(s, slopes, 0)});
  for (int i = 0; i < 2; ++i)
    CHECK(results[0].data<double>()[i] ==
          doctest::Approx(results[1].data<double>()[i]));
}

TEST_CASE("shuffles have gradients if the order is known") {
  check_squares(
      op_with("StatelessShuffle", {Tensor::vector<uint64_t>({7}),
                                   Tensor::vector<uint64_t>({1, 2}), 1}),
      {values({5, 2})});
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output x = ops::placeholder(s, DataType::kDouble, {2});
  CHECK(says(error_of_gradient(s, s.op("RandomShuffle", {x}), x),
             "the order that it has drawn"));
}
