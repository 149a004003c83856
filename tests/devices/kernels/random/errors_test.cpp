// Errors of random ops.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();
const Tensor kTwo = Tensor::vector<int32_t>({2});
const Tensor kSeed = Tensor::vector<int64_t>({1, 2});
const Tensor kKey = Tensor::vector<uint64_t>({1});
const Tensor kCounter = Tensor::vector<uint64_t>({1, 2});
const AttrMap kFloats = {{"dtype", DataType::kFloat}};

// The error of the op on these inputs contains the text.
void expect_refused(std::string_view op, const std::vector<Tensor>& inputs,
                    std::string_view text, const AttrMap& attrs = {}) {
  CAPTURE(op);
  expect_error(run_op(op, inputs, attrs), Code::kInvalidArgument, text);
}

}  // namespace

TEST_CASE("random ops refuse shapes that no tensor can have") {
  const int64_t big = int64_t{1} << 40;
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    expect_refused(op, {Tensor::vector<int32_t>({3, -1})},
                   "negative dimension -1 in [3,-1]", kFloats);
    expect_refused(op, {Tensor::vector<int64_t>({big, big})}, "overflows",
                   kFloats);
    expect_refused(op, {Tensor::scalar(3)}, "shape must be a vector, got int32",
                   kFloats);
    CHECK(run_op(op, {Tensor::vector<int64_t>({big, 1024})}, kFloats)
              .status()
              .code() == Code::kResourceExhausted);
  }
  for (const char* op :
       {"StatelessRandomUniform", "StatelessRandomNormal",
        "StatelessTruncatedNormal", "StatelessRandomUniformFullInt"})
    expect_refused(op, {Tensor::of<int64_t>({1, 1}, {2}), kSeed},
                   "shape must be a vector, got int64[1,1]");
  expect_refused("RandomGamma",
                 {Tensor::vector<int64_t>({big, 1 << 20}),
                  Tensor::vector<float>({1, 2, 3, 4, 5, 6, 7, 8})},
                 "[RandomGamma] [shape] the number of elements");
}

TEST_CASE("RandomUniformInt refuses limits that are not scalars in order") {
  const Tensor three = Tensor::scalar(3), pair = Tensor::vector({1, 2});
  for (const auto& [op, before] :
       std::vector<std::pair<const char*, std::vector<Tensor>>>{
           {"RandomUniformInt", {kTwo}},
           {"StatelessRandomUniformInt", {kTwo, kSeed}},
           {"StatelessRandomUniformIntV2",
            {kTwo, kKey, kCounter, Tensor::scalar(1)}}}) {
    auto inputs = before;
    inputs.insert(inputs.end(), {three, three});
    expect_refused(op, inputs, "minval must be less than maxval, but 3 >= 3");
    inputs.back() = pair;
    expect_refused(op, inputs, "maxval must be a scalar, got int32[2]");
    inputs[inputs.size() - 2] = pair;
    expect_refused(op, inputs, "minval must be a scalar, got int32[2]");
  }
  // Of nothing anything may be asked.
  CHECK(run_op("RandomUniformInt", {Tensor::vector({0}), three, three}).ok());
}

TEST_CASE("stateless random ops refuse a seed that is not two integers") {
  for (const Tensor& seed :
       {Tensor::vector({1}), Tensor::vector({1, 2, 3}), Tensor::scalar(1),
        Tensor::of<int32_t>({1, 2}, {1, 2})}) {
    expect_refused("StatelessRandomUniform", {kTwo, seed},
                   "seed must be of shape [2], got int32");
    expect_refused("StatelessRandomGetKeyCounterAlg", {seed},
                   "seed must be of shape [2], got int32");
    expect_refused("StatelessMultinomial",
                   {Tensor::of<float>({1, 1}, {1}), Tensor::scalar(1), seed},
                   "seed must be of shape [2], got int32");
  }
}

TEST_CASE("a key, a counter and an algorithm are checked") {
  const Tensor one = Tensor::scalar(1);
  const auto expect = [](const Tensor& key, const Tensor& counter,
                         const Tensor& algorithm, std::string_view text) {
    expect_refused("StatelessRandomNormalV2", {kTwo, key, counter, algorithm},
                   text);
    expect_refused("StatelessShuffle",
                   {Tensor::vector({1, 2}), key, counter, algorithm}, text);
  };
  expect(kCounter, kCounter, one, "key must be of shape [1], got uint64[2]");
  expect(Tensor::scalar(uint64_t{1}), kCounter, one, "got uint64[]");
  expect(kKey, kKey, one,
         "counter must be a vector of at least 2, got uint64[1]");
  expect(kKey, Tensor::scalar(uint64_t{1}), one, "got uint64[]");
  expect(kKey, kCounter, Tensor::vector({1}),
         "alg must be a scalar, got int32[1]");
  for (const int32_t algorithm : {0, 4, -1})
    expect(kKey, kCounter, Tensor::scalar(algorithm), "alg must be 1, 2 or 3");
  expect_error(run_op("StatelessRandomUniformV2",
                      {kTwo, kKey, kCounter, Tensor::scalar(2)}),
               Code::kUnimplemented, "ThreeFry (alg 2) is not supported");
}

TEST_CASE("gamma numbers of no alpha are refused") {
  for (const double alpha : {kNan, -0.5, -kInfinity})
    for (const bool stateless : {false, true}) {
      std::vector<Tensor> inputs = {kTwo, Tensor::vector({1.0, alpha})};
      if (stateless) inputs.insert(inputs.begin() + 1, kSeed);
      expect_refused(stateless ? "StatelessRandomGammaV2" : "RandomGamma",
                     inputs, "alpha must not be negative, element 1 is");
    }
  expect_refused("StatelessRandomGammaV2",
                 {kTwo, kSeed, Tensor::vector({1.0, 2.0, 3.0})},
                 "shape [2] must end with that of alpha, [3]");
  expect_refused(
      "StatelessRandomGammaV2",
      {Tensor::vector({3, 2}), kSeed, Tensor::of<double>({2, 1}, {1.0, 2.0})},
      "shape [3,2] must end with that of alpha, [2,1]");
}

TEST_CASE("gamma numbers at the ends of alpha are what they tend to") {
  const auto outputs = run_op("StatelessRandomGammaV2",
                              {kTwo, kSeed, Tensor::vector({0.0, kInfinity})});
  expect_close(outputs, Tensor::vector({0.0, kInfinity}));
}

TEST_CASE("Poisson numbers of no rate are refused") {
  for (const double rate : {kNan, -1.0, -kInfinity}) {
    expect_refused("RandomPoissonV2", {kTwo, Tensor::scalar(rate)},
                   "rates must not be negative, element 0 is");
    expect_refused("StatelessRandomPoisson",
                   {kTwo, kSeed, Tensor::scalar(rate)},
                   "rates must not be negative", kFloats);
  }
  expect_refused("RandomPoissonV2", {kTwo, Tensor::scalar(3e9)},
                 "samples of rate 3000000000, element 0, are beyond int32",
                 {{"dtype", DataType::kInt32}});
  expect_refused("RandomPoissonV2", {kTwo, Tensor::scalar(kInfinity)},
                 "are beyond double", {{"dtype", DataType::kDouble}});
  expect_refused("RandomPoissonV2", {kTwo, Tensor::scalar(1e6)},
                 "are beyond half", {{"dtype", DataType::kHalf}});
  CHECK(run_op("RandomPoissonV2", {kTwo, Tensor::scalar(9.2e18)}).ok());
  CHECK(run_op("RandomPoissonV2", {kTwo, Tensor::scalar(1e300)},
               {{"dtype", DataType::kDouble}})
            .ok());
}

TEST_CASE("binomial numbers of no count or probability are refused") {
  const auto run = [](double count, double chance, DataType dtype) {
    return run_op("StatelessRandomBinomial",
                  {kTwo, kSeed, Tensor::scalar(count), Tensor::scalar(chance)},
                  {{"dtype", dtype}});
  };
  for (const double count : {kNan, kInfinity})
    expect_error(run(count, 0.5, DataType::kDouble), Code::kInvalidArgument,
                 "counts must be finite, one is");
  expect_error(run(1e10, 0.5, DataType::kInt32), Code::kInvalidArgument,
               "a count of 10000000000 is beyond int32");
  expect_error(run(9, kNan, DataType::kInt64), Code::kInvalidArgument,
               "probs must be numbers, one is nan");
  expect_close(run(9, kNan, DataType::kDouble), Tensor::vector({kNan, kNan}));
  CHECK(run(1e308, 0.4, DataType::kDouble).ok());
  CHECK(run(1e308, 1e-308, DataType::kDouble).ok());
  expect_refused("StatelessRandomBinomial",
                 {kTwo, kSeed, Tensor::vector({1.0, 2.0}),
                  Tensor::vector({0.1, 0.2, 0.3})},
                 "counts and probs do not broadcast: [2] and [3]");
}

TEST_CASE("bounds of normal numbers are checked") {
  const auto expect = [](double mean, double deviation, double low, double high,
                         std::string_view text) {
    expect_refused("ParameterizedTruncatedNormal",
                   {kTwo, Tensor::scalar(mean), Tensor::scalar(deviation),
                    Tensor::scalar(low), Tensor::scalar(high)},
                   text);
  };
  expect(kNan, 1, 0, 1, "means must be finite, row 0 has nan");
  expect(kInfinity, 1, 0, 1, "means must be finite, row 0 has inf");
  for (const double deviation : {kNan, 0.0, -1.0, kInfinity})
    expect(0, deviation, 0, 1, "stdevs must be positive, row 0 has");
  expect(0, 1, 1, 1, "minvals must be less than maxvals, row 0 has 1 and 1");
  expect(0, 1, kNan, 1, "minvals must be less than maxvals");
  expect(0, 1, -kInfinity, kInfinity, "one bound must be finite");
  const Tensor one = Tensor::scalar(1.0), two = Tensor::scalar(2.0);
  expect_refused("ParameterizedTruncatedNormal",
                 {kTwo, Tensor::vector({1.0, 2.0, 3.0}), one, one, two},
                 "means must be a scalar, or a vector of 2, got double[3]");
  expect_refused("ParameterizedTruncatedNormal",
                 {kTwo, one, one, one, Tensor::of<double>({1, 1}, {2.0})},
                 "maxvals must be a scalar, or a vector of 2, got double[1,1]");
  expect_refused("ParameterizedTruncatedNormal",
                 {Tensor::make(DataType::kInt32, {0}), one, one, one, two},
                 "shape must have an element at least");
}

TEST_CASE("Multinomial refuses logits that are not a matrix of classes") {
  const Tensor one = Tensor::scalar(1);
  expect_refused("Multinomial", {Tensor::vector({1.0f}), one},
                 "logits must be a matrix, got float[1]");
  expect_refused("Multinomial", {Tensor::make(DataType::kFloat, {3, 0}), one},
                 "there is no class in logits, float[3,0]");
  const Tensor logits = Tensor::of<float>({1, 1}, {1});
  expect_refused("Multinomial", {logits, Tensor::vector({1})},
                 "num_samples must be a scalar, got int32[1]");
  expect_refused("Multinomial", {logits, Tensor::scalar(-1)},
                 "num_samples must not be negative, is -1");
  // Those of rows without a class are one too many, as in TensorFlow.
  expect_close(
      run_op("Multinomial", {Tensor::of<double>({1, 2}, {kNan, -kInfinity}),
                             Tensor::scalar(2)}),
      Tensor::of<int64_t>({1, 2}, {2, 2}));
}

TEST_CASE("RandomShuffle returns a scalar or an empty tensor as it is") {
  expect_close(run_op("RandomShuffle", {Tensor::scalar("x")}),
               Tensor::scalar("x"));
  const Tensor none = Tensor::make(DataType::kFloat, {5, 0});
  expect_close(run_op("RandomShuffle", {none}), none);
}

}  // namespace tagflow::devices
