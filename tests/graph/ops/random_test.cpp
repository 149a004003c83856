#include "graph/op_registry.h"
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {
namespace {

const InferInput kSeed({2}, DataType::kInt64);
const InferInput kKey({1}, DataType::kUInt64);
const InferInput kCounter({2}, DataType::kUInt64);
const InferInput kAlgorithm(PartialShape::scalar(), DataType::kInt32);
const AttrMap kFloats = {{"dtype", DataType::kFloat}};

}  // namespace

TEST_CASE("a shape that is known is that of the numbers") {
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    CHECK(infer(op, {ints({2, 3})}, kFloats) == "[2,3]");
    CHECK(infer(op, {unknown_ints({2})}, kFloats) == "[?,?]");
    CHECK(infer(op, {unknown_ints(kUnknownShape)}, kFloats) == "<unknown>");
    expect_refused(infer(op, {unknown_ints(PartialShape::scalar())}, kFloats),
                   "input 0");
  }
  for (const char* op : {"StatelessRandomUniform", "StatelessRandomNormal",
                         "StatelessTruncatedNormal"})
    CHECK(infer(op, {ints({2, 3}), kSeed}) == "[2,3]");
  for (const char* op :
       {"StatelessRandomUniformV2", "StatelessRandomNormalV2",
        "StatelessTruncatedNormalV2", "StatelessRandomUniformFullIntV2"})
    CHECK(infer(op, {ints({4}), kKey, kCounter, kAlgorithm}) == "[4]");
}

TEST_CASE("shape inference: RandomUniformInt's limits are scalars") {
  const InferInput one = Tensor::scalar(1), vector = ints({1});
  CHECK(infer("RandomUniformInt", {ints({2}), one, one}) == "[2]");
  expect_refused(infer("RandomUniformInt", {ints({2}), one, vector}),
                 "input 2");
  CHECK(infer("StatelessRandomUniformInt", {ints({2}), kSeed, one, one}) ==
        "[2]");
  expect_refused(
      infer("StatelessRandomUniformInt", {ints({2}), kSeed, vector, one}),
      "input 2");
  expect_refused(infer("StatelessRandomUniformIntV2",
                       {ints({2}), kKey, kCounter, kAlgorithm, vector, one}),
                 "input 4");
}

TEST_CASE("seeds, keys and counters have their sizes") {
  const InferInput three({3}, DataType::kInt64);
  expect_refused(infer("StatelessRandomUniform", {ints({2}), three}),
                 "input 1 must be of shape [2], not [3]");
  expect_refused(infer("StatelessRandomGetKeyCounter", {three}),
                 "input 0 must be of shape [2], not [3]");
  CHECK(infer("StatelessRandomGetKeyCounter", {kSeed}) == "[1][2]");
  CHECK(infer("StatelessRandomGetKeyCounterAlg", {kSeed}) == "[1][2][]");
  CHECK(infer("StatelessRandomGetAlg", {}) == "[]");
  expect_refused(infer("StatelessRandomNormalV2",
                       {ints({2}), kCounter, kCounter, kAlgorithm}),
                 "input 1 must be of shape [1], not [2]");
  expect_refused(infer("StatelessRandomNormalV2",
                       {ints({2}), kKey,
                        InferInput(PartialShape::scalar(), DataType::kUInt64),
                        kAlgorithm}),
                 "input 2");
  expect_refused(infer("StatelessShuffle", {{4, 2}, kKey, kCounter, ints({1})}),
                 "input 3");
  CHECK(infer("StatelessShuffle", {{4, 2}, kKey, kCounter, kAlgorithm}) ==
        "[4,2]");
}

TEST_CASE("samples come in front of the parameters' shape") {
  CHECK(infer("RandomGamma", {ints({5, 6}), {2, kAny}}) == "[5,6,2,?]");
  CHECK(infer("RandomPoissonV2",
              {ints({5}), InferInput({2}, DataType::kDouble)}) == "[5,2]");
  CHECK(infer("RandomGamma", {unknown_ints(kUnknownShape), {2}}) ==
        "<unknown>");
  // If there is a seed, the shape is that of the whole output.
  CHECK(infer("StatelessRandomGammaV2", {ints({5, 2}), kSeed, {2}}) == "[5,2]");
  CHECK(infer("StatelessRandomBinomial",
              {ints({5, 2}), kSeed, InferInput({2}, DataType::kDouble),
               InferInput(PartialShape::scalar(), DataType::kDouble)}) ==
        "[5,2]");
}

TEST_CASE("shapes of ParameterizedTruncatedNormal's bounds fit the output") {
  CHECK(infer("ParameterizedTruncatedNormal",
              {ints({3, 4}), {3}, {1}, {}, kUnknownShape}) == "[3,4]");
  expect_refused(
      infer("ParameterizedTruncatedNormal", {ints({3, 4}), {3}, {2}, {}, {}}),
      "input 2 must be a scalar, or a vector of 3");
  expect_refused(infer("ParameterizedTruncatedNormal",
                       {ints({3, 4}), {3}, {1, 1}, {}, {}}),
                 "input 2");
  expect_refused(
      infer("ParameterizedTruncatedNormal", {ints({}), {}, {}, {}, {}}),
      "shape must have an element at least");
}

TEST_CASE("shapes of Multinomial have num_samples in each row") {
  CHECK(infer("Multinomial", {{3, kAny}, Tensor::scalar(7)}) == "[3,7]");
  CHECK(infer("StatelessMultinomial",
              {{kAny, 4}, unknown_ints(PartialShape::scalar()), kSeed}) ==
        "[?,?]");
  expect_refused(infer("Multinomial", {{3, 4}, Tensor::scalar(-1)}),
                 "num_samples must not be negative, is -1");
  expect_refused(infer("Multinomial", {{3}, Tensor::scalar(1)}), "input 0");
  CHECK(infer("RandomShuffle", {{3, kAny}}) == "[3,?]");
}

TEST_CASE("random ops are stateful unless they are stateless by name") {
  const OpRegistry& registry = OpRegistry::global();
  for (const std::string& name : registry.names()) {
    const OpDef& op = *registry.find_or_null(name);
    if (name.starts_with("Stateless")) {
      CHECK_MESSAGE(!op.is_stateful, name);
    } else if (op.find_attr("seed2") != nullptr &&
               name.find("Queue") == std::string::npos) {
      // What is drawn says which accidental hits there are.
      CHECK_MESSAGE(op.is_stateful == (name != "ComputeAccidentalHits"), name);
    }
  }
  for (const char* name : {"RandomUniform", "StatefulUniform"})
    CHECK((*registry.find(name))->is_stateful);
}

}  // namespace tagflow::graph
