#include "net/serving/json_predict.h"

#include <doctest/doctest.h>

#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

ServedSignature one_input() {
  ServedSignature signature;
  signature.name = "one";
  signature.inputs["x"] = {"x:0", DataType::kFloat, {-1}};
  return signature;
}

ServedSignature two_inputs() {
  ServedSignature signature;
  signature.name = "two";
  signature.inputs["name"] = {"name:0", DataType::kString, {-1}};
  signature.inputs["values"] = {"values:0", DataType::kInt32, {-1, 2}};
  return signature;
}

Result<JsonPredict> read(const ServedSignature& signature,
                         std::string_view body) {
  return read_json_predict(body, [&](const std::string&) {
    return Result<const ServedSignature*>(&signature);
  });
}

TEST_CASE("instances are rows, of one input without its name") {
  const auto body = read(one_input(), R"({"instances": [1, 2.5, 3]})");
  REQUIRE(body.ok());
  CHECK(body->is_in_rows);
  CHECK(identical(body->inputs.at("x"), Tensor::vector<float>({1, 2.5f, 3})));
  const auto named =
      read(one_input(), R"({"instances": [{"x": 1}, {"x": 2}]})");
  CHECK(identical(named.value().inputs.at("x"), Tensor::vector<float>({1, 2})));
}

TEST_CASE("instances have a value for each of several inputs") {
  const auto body = read(two_inputs(), R"({"instances": [
      {"name": "a", "values": [1, 2]},
      {"values": [3, 4], "name": {"b64": "Yg=="}}]})");
  CAPTURE(body.status().to_string());
  REQUIRE(body.ok());
  CHECK(identical(body->inputs.at("name"),
                  Tensor::vector<std::string>({"a", "b"})));
  CHECK(identical(body->inputs.at("values"),
                  Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4})));
}

TEST_CASE("inputs are whole tensors") {
  const auto body =
      read(two_inputs(),
           R"({"inputs": {"name": ["a"], "values": [[1, 2], [3, 4]]}})");
  REQUIRE(body.ok());
  CHECK_FALSE(body->is_in_rows);
  CHECK(body->inputs.at("values").describe() == "int32[2,2]");
  CHECK(read(one_input(), R"({"inputs": 1.5})").value().inputs.at("x").rank() ==
        0);
}

TEST_CASE("the name of the signature may come last") {
  std::string asked;
  const ServedSignature signature = one_input();
  const auto body = read_json_predict(
      R"({"instances": [1], "other": {"a": [null, true, "x"]},
          "signature_name": "s"})",
      [&](const std::string& name) {
        asked = name;
        return Result<const ServedSignature*>(&signature);
      });
  REQUIRE(body.ok());
  CHECK(asked == "s");
  CHECK(body->signature == "s");
}

TEST_CASE("a single binary string is no object of inputs") {
  ServedSignature signature;
  signature.inputs["image_bytes"] = {"i:0", DataType::kString, {-1}};
  const auto body = read(signature, R"({"instances": [{"b64": "YQ=="}]})");
  REQUIRE(body.ok());
  CHECK(identical(body->inputs.at("image_bytes"),
                  Tensor::vector<std::string>({"a"})));
}

TEST_CASE("bodies that ask nothing are refused, and say why") {
  const std::pair<const char*, const char*> wrong[] = {
      {"{}", "neither \"instances\" nor \"inputs\""},
      {"[]", "there is no object"},
      {R"({"instances": [1], "inputs": 1})", "or one of them twice"},
      {R"({"instances": 1})", "there is no array"},
      {R"({"instances": []})", "there are no \"instances\""},
      {R"({"instances": [1]} x)", "something behind the value"},
      {R"({"instances": [{"y": 1}]})", "has no input \"y\""},
      {R"({"instances": [{"x": 1}, {}]})", "1 of 2 \"instances\" have"},
      {R"({"instances": [{"x": 1, "x": 2}]})", "2 of 1 \"instances\" have"},
      {R"({"inputs": {"x": 1, "x": 2}})", "has two values"},
      {R"({"instances": [[1], [1, 2]]})", "differ in their lengths"},
      {R"({"instances": [1)", "neither \",\" nor \"]\""}};
  for (const auto& [body, why] : wrong) {
    CAPTURE(body);
    const Status status = read(one_input(), body).status();
    CAPTURE(status.to_string());
    CHECK(status.code() == Code::kInvalidArgument);
    CHECK(says(status, why));
  }
  CHECK(says(read(two_inputs(), R"({"instances": [1]})").status(),
             "has 2 inputs, so values need their names"));
}

TEST_CASE("an error of a value names its input") {
  CHECK(read(one_input(), R"({"instances": [1, 1e39]})").status().message() ==
        "input \"x\": [json] 1e39 is too large for float at byte 18");
  CHECK(read(one_input(), R"({"inputs": [1, true]})").status().message() ==
        "input \"x\": [json] there is no number at byte 15");
  CHECK(read(two_inputs(),
             R"({"instances": [{"name": "a", "values": [1, 3000000000]}]})")
            .status()
            .message() ==
        "input \"values\": [json] 3000000000 is no int32 at byte 43");
  CHECK(read(two_inputs(),
             R"({"inputs": {"name": ["a"], "values": [[1, 3000000000]]}})")
            .status()
            .message() ==
        "input \"values\": [json] 3000000000 is no int32 at byte 42");
}

TEST_CASE("an answer is in the format of its request") {
  const Tensors one{{"y", Tensor::vector<float>({1, 2.5f})}};
  CHECK(write_json_predict(one, true).value() ==
        "{\"predictions\": [1.0, 2.5]}\n");
  CHECK(write_json_predict(one, false).value() ==
        "{\"outputs\": [1.0, 2.5]}\n");
  const Tensors two{{"a", Tensor::of<int32_t>({2, 1}, {1, 2})},
                    {"b_bytes", Tensor::vector<std::string>({"x", "y"})}};
  CHECK(write_json_predict(two, true).value() ==
        "{\"predictions\": [{\"a\": [1], \"b_bytes\": {\"b64\": \"eA==\"}}, "
        "{\"a\": [2], \"b_bytes\": {\"b64\": \"eQ==\"}}]}\n");
  CHECK(write_json_predict(two, false).value() ==
        "{\"outputs\": {\"a\": [[1], [2]], \"b_bytes\": [{\"b64\": \"eA==\"}, "
        "{\"b64\": \"eQ==\"}]}}\n");
}

TEST_CASE("outputs without rows in common cannot be written as rows") {
  const Tensors scalar{{"y", Tensor::scalar<float>(1)}};
  CHECK(says(write_json_predict(scalar, true).status(),
             "output \"y\" is float[]"));
  CHECK(write_json_predict(scalar, false).value() == "{\"outputs\": 1.0}\n");
  const Tensors uneven{{"a", Tensor::vector<float>({1})},
                       {"b", Tensor::vector<float>({1, 2})}};
  CHECK(says(write_json_predict(uneven, true).status(), "output \"b\""));
}

}  // namespace
}  // namespace tagflow::net::serving
