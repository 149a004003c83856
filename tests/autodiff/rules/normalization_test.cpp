// Normalisations. Batch normalisation and LRN have no kernels for doubles.
#include <doctest/doctest.h>

#include "graph/builder/builder.h"
#include "graph/float16.h"
#include "tests/autodiff/rules/floats.h"
#include "tests/autodiff/rules/functions.h"

using namespace tagflow;
using namespace tagflow::autodiff;
using namespace tagflow::autodiff::testing;
using graph::Outputs;
using graph::Scope;
namespace ops = tagflow::graph::ops;

namespace {

// Output `port` of the op. x: the images, scale and offset, and if it is not
// training mean and variance.
Function batch_norm(int version, AttrMap attrs, int port = 0) {
  return of_floats([=](const Scope& s, const Outputs& x) {
    const std::string op = version == 1
                               ? "FusedBatchNorm"
                               : "FusedBatchNormV" + std::to_string(version);
    graph::Inputs inputs = x;
    if (x.size() == 3) {
      const graph::Output none =
          s.constant(Tensor::make(DataType::kFloat, {0}));
      inputs.add(none).add(none);
    }
    return Outputs(s.op(op, inputs, attrs)[port]);
  });
}

Function batch_norm_grad(AttrMap attrs, int port) {
  return of_floats([=](const Scope& s, const Outputs& x) {
    graph::Inputs inputs = {x[0], x[1], x[2]};
    if (x.size() == 3) {
      const graph::OpResult forward =
          s.op("FusedBatchNormV2", {x[1], x[2], x[2], x[2], x[2]}, attrs);
      inputs.add(forward[3]).add(forward[4]);
    } else {
      inputs.add(x[3]).add(x[4]);
    }
    return Outputs(s.op("FusedBatchNormGradV2", inputs, attrs)[port]);
  });
}

std::vector<Tensor> images_and_vectors(const Dims& images, int64_t channels,
                                       int vectors) {
  std::vector<Tensor> xs = {values(images)};
  for (int i = 0; i < vectors; ++i) xs.push_back(values({channels}, 0.5, 1.5));
  return xs;
}

constexpr float kEpsilon = 0.05f;

}  // namespace

TEST_CASE("batch normalisation has gradients in training") {
  for (int version : {1, 2, 3}) {
    const AttrMap attrs = {{"epsilon", kEpsilon}};
    check_gradients(batch_norm(version, attrs),
                    images_and_vectors({2, 2, 3, 2}, 2, 2), float_options());
  }
  check_gradients(
      batch_norm(3, {{"epsilon", kEpsilon}, {"data_format", "NCHW"}}),
      images_and_vectors({3, 2, 2, 2}, 2, 2), float_options());
  check_gradients(
      batch_norm(3, {{"epsilon", kEpsilon}, {"data_format", "NCDHW"}}),
      images_and_vectors({2, 2, 2, 1, 2}, 2, 2), float_options());
}

TEST_CASE("batch normalisation has gradients with given averages") {
  for (const char* format : {"NHWC", "NCHW"}) {
    const AttrMap attrs = {
        {"epsilon", kEpsilon}, {"is_training", false}, {"data_format", format}};
    check_gradients(batch_norm(3, attrs),
                    images_and_vectors({2, 2, 2, 2}, 2, 4), float_options());
  }
}

TEST_CASE("the averages of batch normalisation have gradients") {
  for (int port : {1, 2}) {
    check_gradients(batch_norm(3, {{"epsilon", kEpsilon}}, port),
                    images_and_vectors({2, 2, 2, 2}, 2, 2), float_options());
    check_gradients(batch_norm(3, {{"exponential_avg_factor", 0.25f}}, port),
                    images_and_vectors({2, 2, 2, 2}, 2, 4), float_options());
    check_gradients(batch_norm(3, {{"is_training", false}}, port),
                    images_and_vectors({2, 2, 2, 2}, 2, 4), float_options());
  }
}

TEST_CASE("the gradient op of batch normalisation has gradients") {
  for (int port : {0, 1, 2}) {
    for (const char* format : {"NHWC", "NCHW"}) {
      std::vector<Tensor> xs = images_and_vectors({2, 2, 2, 2}, 2, 3);
      xs.insert(xs.begin(), values({2, 2, 2, 2}));
      AttrMap attrs = {{"epsilon", kEpsilon}, {"data_format", format}};
      check_gradients(batch_norm_grad(attrs, port), {xs[0], xs[1], xs[2]},
                      float_options());
      attrs.emplace("is_training", false);
      check_gradients(batch_norm_grad(attrs, port), xs, float_options());
    }
  }
}

TEST_CASE("batch normalisation of halves has gradients of halves") {
  const Function f = [](const Scope& s, const Outputs& x) {
    const graph::OpResult y =
        s.op("FusedBatchNormV3", {x[0], x[1], x[1], x[1], x[1]});
    return Outputs(ops::mul(s, y, y));
  };
  const std::vector<Tensor> xs = {
      Tensor::of<Half>({2, 1, 1, 1}, {Half(1.0f), Half(2.0f)}),
      Tensor::vector<float>({1})};
  CHECK(gradients_of(f, xs)[0].dtype() == DataType::kHalf);
  CHECK(gradients_of(f, xs)[1].dtype() == DataType::kFloat);
}

TEST_CASE("LRN and its gradient op have gradients") {
  const AttrMap attrs = {
      {"depth_radius", 1}, {"bias", 1.5f}, {"alpha", 0.7f}, {"beta", 0.6f}};
  check_gradients(of_floats(op_of("LRN", attrs)), {values({1, 2, 1, 4})},
                  float_options(3));
  check_gradients(of_floats([&](const Scope& s, const Outputs& x) {
                    const graph::Output y = s.op("LRN", {x[1]}, attrs);
                    return Outputs(s.op("LRNGrad", {x[0], x[1], y}, attrs));
                  }),
                  {values({1, 1, 2, 4}), values({1, 1, 2, 4})},
                  float_options());
}

TEST_CASE("LRN has gradients of any order if its window is wider than x") {
  for (const int64_t radius : {3, 5, 100})
    check_gradients(
        of_floats(op_of("LRN", {{"depth_radius", radius}, {"bias", 1.5f}})),
        {values({1, 2, 1, 3})}, float_options(3));
}
