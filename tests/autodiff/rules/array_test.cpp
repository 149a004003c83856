// Rules of array ops that pass on, reshape, join, split or reorder tensors, and
// of random ops.
#include <doctest/doctest.h>

#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"
#include "tests/autodiff/rules/squares.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
namespace ops = tagflow::graph::ops;

namespace {

std::string error_of_gradient(const graph::Scope& s, const graph::Output& y,
                              const graph::Output& x) {
  gradients(s, {y}, {x});
  return s.status().to_string();
}

bool says(const std::string& message, std::string_view part) {
  return message.find(part) != message.npos;
}

}  // namespace

TEST_CASE("what hands its input on has its gradient") {
  for (const char* op : {"Identity", "Snapshot", "GuaranteeConst"})
    check_squares(op_of(op), {values({2, 3})});
  check_squares(op_with("Print", {1.5}, {{"first_n", 0}}), {values({2})});
  check_squares(op_of("EnsureShape", {{"shape", PartialShape({-1, 3})}}),
                {values({2, 3})});
  check_squares(op_of("PlaceholderWithDefault", {{"shape", PartialShape()}}),
                {values({3})});
  check_squares(outputs_of("IdentityN", 0, {}, {0, 1}),
                {values({2}), values({})});
}

TEST_CASE("PreventGradient fails with its message") {
  graph::Graph graph;
  const graph::Scope s(graph);
  const Output x = ops::placeholder(s, DataType::kDouble, {2});
  const std::string error =
      error_of_gradient(s, ops::prevent_gradient(s, x, "not this way"), x);
  CHECK(says(error, "[PreventGradient]"));
  CHECK(says(error, "not this way"));
}

TEST_CASE("ops that change shapes have gradients of the shapes before") {
  check_squares(op_with("Reshape", {{3, 2}}), {values({2, 3})});
  check_squares(op_with("Reshape", {{-1}}), {values({2, 3})});
  check_squares(op_with("Reshape", {{2, 0}}), {values({0, 3})});
  check_squares(op_with("ExpandDims", {-1}), {values({2, 3})});
  check_squares(op_of("Squeeze"), {values({1, 3, 1})});
  check_squares(op_of("Squeeze", {{"squeeze_dims", std::vector<int64_t>{0}}}),
                {values({1, 3, 1})});
}

TEST_CASE("ops that repeat elements sum over the copies") {
  check_squares(op_with("BroadcastTo", {{2, 3, 4}}), {values({3, 1})});
  check_squares(op_with("BroadcastTo", {{2, 3}}), {values({})});
  check_squares(op_with("BroadcastTo", {{2, 3}}), {values({2, 3})});
  check_squares(outputs_of("Fill", 1, {{2, 3}}, {0}), {values({})});
  check_squares(op_with("Tile", {{2, 3}}), {values({2, 2})});
  check_squares(op_with("Tile", {{0, 1}}), {values({2, 2})});
  check_squares(op_with("Tile", {Tensor::of<int32_t>({0}, {})}), {values({})});
  check_squares(op_with_unknown("Tile", {Tensor::vector<int64_t>({2, 1})}),
                {values({2, 2})});
}

TEST_CASE("joins of tensors have gradients by each") {
  const auto three = {values({2, 3}), values({1, 3}), values({0, 3})};
  const auto two = {values({2, 3}), values({2, 2})};
  check_squares(op_with("ConcatV2", {0}), three);
  check_squares(op_with("ConcatV2", {-1}), two);
  check_squares(op_with("ConcatV2", {Tensor::scalar<int64_t>(1)}), two);
  check_squares(op_with_unknown("ConcatV2", {-1}), two);
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return s.op("Concat", {1, x[0], x[1]});
      },
      two);
  const auto same = {values({2, 3}), values({2, 3})};
  check_squares(op_of("Pack"), same);
  check_squares(op_of("Pack", {{"axis", -1}}), same);
  check_squares(op_of("ParallelConcat", {{"shape", PartialShape({2, 3})}}),
                {values({1, 3}), values({1, 3})});
}

TEST_CASE("splits of a tensor have gradients, if not all parts are used") {
  check_squares(outputs_of("Split", 1, {1}, {0, 2}, {{"num_split", 3}}),
                {values({2, 6})});
  check_squares(
      outputs_of("SplitV", 0, {{1, 0, -1}, -1}, {1, 2}, {{"num_split", 3}}),
      {values({2, 4})});
  check_squares(outputs_of("Unpack", 0, {}, {0, 2}, {{"num", 3}, {"axis", 1}}),
                {values({2, 3, 2})});
}

TEST_CASE("ops that reorder elements have gradients in the old order") {
  const Tensor x = values({2, 3, 4});
  check_squares(op_with("Transpose", {{2, 0, 1}}), {x});
  check_squares(op_with("Transpose", {{-1, 0, 1}}), {x});
  check_squares(op_with_unknown("Transpose", {{-1, 0, 1}}), {x});
  check_squares(op_with("ConjugateTranspose", {{1, 0}}),
                {complex_values({2, 3})});
  check_squares(op_with("ReverseV2", {{-1, 0}}), {values({2, 3})});
  check_squares(op_with("Reverse", {{false, true}}), {values({2, 3})});
  check_squares(op_with("ReverseSequence", {{2, 0, 3}},
                        {{"seq_dim", 1}, {"batch_dim", 0}}),
                {values({3, 4})});
  check_squares(op_with("Roll", {{1, -3}, {0, 1}}), {values({3, 4})});
}

TEST_CASE("series have gradients by their ends") {
  check_squares(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return ops::range(s, x[0], Tensor::scalar(4.5), x[1]);
      },
      {Tensor::scalar(0.5), Tensor::scalar(1.1)});
  for (const int count : {5, 1})
    check_squares(op_with("LinSpace", {count}),
                  {Tensor::scalar(0.5), Tensor::scalar(2.)});
}

TEST_CASE("different values of a tensor have gradients by it") {
  check_squares(op_of("Unique"), {values({5})});
  check_squares(op_of("UniqueWithCounts"), {values({5})});
  check_squares(op_with("UniqueV2", {{1}}), {values({2, 4})});
  check_squares(op_with("UniqueWithCountsV2", {Tensor::of<int32_t>({0}, {})}),
                {values({4})});
  check_squares(op_with("ListDiff", {{0.5, 0.25}}), {values({5})});
}

TEST_CASE("equal values share the gradient of the one that is left of them") {
  const Tensor shares = gradients_of(
      [](const graph::Scope& s, const graph::Outputs& x) {
        return ops::mul(s, Output(s.op("Unique", {x[0]})), {4., 7.});
      },
      {Tensor::vector<double>({3, 2, 3})})[0];
  CHECK(identical(shares, Tensor::vector<double>({2, 7, 2})));
}

TEST_CASE("counts have gradients by the weights") {
  const Tensor vector = Tensor::vector<int32_t>({1, 0, 1, 7});
  const Tensor matrix = Tensor::of<int32_t>({2, 3}, {1, 0, 1, 2, 5, 2});
  for (const char* op : {"Bincount", "DenseBincount"}) {
    check_squares(outputs_of(op, 2, {vector, 3}, {0}), {values({4})});
    check_squares(outputs_of(op, 2, {matrix, 3}, {0}), {values({2, 3})});
    check_squares(outputs_of(op, 2, {matrix, 0}, {0}), {values({2, 3})});
    check_squares(outputs_of(op, 2, {vector, 3}, {0}), {values({0})});
  }
}

// --- Random ops -------------------------------------------------------------

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
  // Where mean and limits move together, samples move as much; where stddev and
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

TEST_CASE("shuffles have gradients where the order is known") {
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
