#include "net/serving/examples.h"

#include <doctest/doctest.h>

#include <cmath>

#include "net/proto/serving/predict.pb.h"
#include "net/serving/json_examples.h"
#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

using tensorflow::serving::Input;

ServedSignature signature_of(const std::string& input, DataType dtype,
                             PartialShape shape) {
  ServedSignature signature;
  signature.inputs[input] = {input + ":0", dtype, std::move(shape), false};
  return signature;
}

// Empty examples, with the context's feature "a" of so many bytes.
Input with_context(int examples, size_t bytes) {
  Input input;
  auto* const list = input.mutable_example_list_with_context();
  (*list->mutable_context()->mutable_features()->mutable_feature())["a"]
      .mutable_bytes_list()
      ->add_value(std::string(bytes, 'x'));
  for (int i = 0; i < examples; ++i) list->add_examples();
  return input;
}

TEST_CASE("a context is not repeated without an end") {
  constexpr size_t kMost = size_t(kMostRepeatedBytes);
  const auto strings =
      signature_of("a", DataType::kString, PartialShape({-1, 1}));
  const auto parsed = signature_of("a", DataType::kString, PartialShape({-1}));
  for (const ServedSignature& signature : {strings, parsed}) {
    CHECK(inputs_of_examples(signature, with_context(4, 1000)).ok());
    CHECK(inputs_of_examples(signature, with_context(1000, kMost / 1000))
              .status()
              .code() == Code::kResourceExhausted);
  }
}

TEST_CASE("a number that only infinity could stand for is no feature") {
  Input input;
  std::string signature;
  const auto read = [&](const std::string& value) {
    input.Clear();
    return read_json_examples(
        fmt::format(R"({{"examples": [{{"a": {}}}]}})", value), signature,
        &input);
  };
  CHECK(read("[1.5, 1e39]").message() ==
        "feature \"a\": [json] 1e39 is too large for float at byte 26");
  CHECK(read("-1e400").code() == Code::kInvalidArgument);
  REQUIRE(read("[1e-400, Infinity, 1e20]").ok());
  const auto& floats = input.example_list_with_context()
                           .examples(0)
                           .features()
                           .feature()
                           .at("a")
                           .float_list();
  CHECK(floats.value(0) == 0);
  CHECK(std::isinf(floats.value(1)));
  CHECK(floats.value(2) == 1e20f);
}

TEST_CASE("examples with different numbers of values are no tensor") {
  Input input;
  auto* const list = input.mutable_example_list();
  const auto add = [&](int values) {
    auto& features = *list->add_examples()->mutable_features();
    auto& floats = *(*features.mutable_feature())["a"].mutable_float_list();
    for (int i = 0; i < values; ++i) floats.add_value(1);
  };
  add(1000);
  for (int i = 0; i < 1000; ++i) add(0);
  const Status refused =
      inputs_of_examples(
          signature_of("a", DataType::kFloat, PartialShape({-1, -1})), input)
          .status();
  CHECK(says(refused, "has 1000 values in one example, and 0 in another"));
}

}  // namespace
}  // namespace tagflow::net::serving
