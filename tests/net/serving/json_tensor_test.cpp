#include "net/serving/json_tensor.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

Result<Tensor> read(DataType dtype, std::string_view text) {
  JsonReader json(text);
  TAGFLOW_ASSIGN(const auto reader, JsonTensorReader::make(dtype));
  TAGFLOW_RETURN_IF_ERROR(reader->read(json));
  TAGFLOW_RETURN_IF_ERROR(json.end());
  return reader->take();
}

std::string written(const Tensor& tensor, bool is_binary = false) {
  std::string text;
  REQUIRE(write_json_tensor(tensor, is_binary, text).ok());
  return text;
}

TEST_CASE("nested lists are a tensor") {
  const auto matrix = read(DataType::kFloat, " [ [1, 2.5,-3e2] ,[4,5,6]] ");
  REQUIRE(matrix.ok());
  CHECK(
      identical(*matrix, Tensor::of<float>({2, 3}, {1, 2.5f, -300, 4, 5, 6})));
  CHECK(identical(read(DataType::kInt32, "7").value(),
                  Tensor::scalar<int32_t>(7)));
  CHECK(read(DataType::kFloat, "[]").value().describe() == "float[0]");
  CHECK(read(DataType::kFloat, "[[], []]").value().describe() == "float[2,0]");
  CHECK(identical(read(DataType::kBool, "[true, false]").value(),
                  Tensor::vector<bool>({true, false})));
}

TEST_CASE("what is written reads as the same") {
  const Tensor tensors[] = {
      Tensor::vector<float>({0.1f, 1e-30f, 3.4e38f, -0.0f, 1234567}),
      Tensor::vector<double>({0.1, 1e300, -5}),
      Tensor::of<int64_t>({2, 1}, {INT64_MIN, INT64_MAX}),
      Tensor::vector<uint64_t>({0, UINT64_MAX}),
      Tensor::vector<int8_t>({-128, 127}),
      Tensor::scalar<bool>(true),
      Tensor::of<std::string>({2, 1}, {"a\"\\\n\x01", "\xc3\xa9"})};
  for (const Tensor& tensor : tensors) {
    CAPTURE(tensor.to_string());
    const auto again = read(tensor.dtype(), written(tensor));
    CAPTURE(again.status().to_string());
    REQUIRE(again.ok());
    CHECK(identical(*again, tensor));
  }
}

TEST_CASE("numbers that are none of JSON's are written as names") {
  const float infinity = INFINITY;
  CHECK(written(Tensor::vector<float>({NAN, infinity, -infinity, 2})) ==
        "[NaN, Infinity, -Infinity, 2.0]");
  const auto read_again =
      read(DataType::kDouble, "[NaN, Infinity, -Infinity]").value();
  CHECK(std::isnan(read_again.data<double>()[0]));
  CHECK(read_again.data<double>()[1] == INFINITY);
  CHECK(read_again.data<double>()[2] == -INFINITY);
}

TEST_CASE("strings that are no text are in base64") {
  const Tensor bytes = Tensor::vector<std::string>({"\xff", "a"});
  CHECK(written(bytes) == R"([{"b64": "/w=="}, {"b64": "YQ=="}])");
  CHECK(written(Tensor::scalar("a"), true) == R"({"b64": "YQ=="})");
  CHECK(identical(read(DataType::kString, written(bytes)).value(), bytes));
}

TEST_CASE("escapes of strings are those of JSON") {
  CHECK(read(DataType::kString, R"("\u00e9\ud83d\ude00\/")")
            .value()
            .scalar_value<std::string>() == "\xc3\xa9\xf0\x9f\x98\x80/");
  for (const char* wrong :
       {"\"\\x\"", "\"\\ud800\"", "\"\xff\"", "\"a", "\"a\\\"", "\"\n\""}) {
    CAPTURE(wrong);
    CHECK(read(DataType::kString, wrong).status().code() ==
          Code::kInvalidArgument);
  }
}

TEST_CASE("values that do not fit their type are refused") {
  const std::pair<DataType, const char*> wrong[] = {
      {DataType::kInt32, "1.5"},
      {DataType::kInt32, "2147483648"},
      {DataType::kUInt8, "256"},
      {DataType::kUInt8, "-1"},
      {DataType::kInt64, "1e3"},
      {DataType::kInt64, "NaN"},
      {DataType::kFloat, "1e39"},
      {DataType::kFloat, "true"},
      {DataType::kFloat, "\"1\""},
      {DataType::kBool, "1"},
      {DataType::kString, "1"},
      {DataType::kFloat, "null"},
      {DataType::kString, "{\"x\": 1}"},
      {DataType::kString, "{\"b64\": \"?\"}"},
      {DataType::kString, "{\"b64\": \"YQ==\", \"x\": 1}"}};
  for (const auto& [dtype, text] : wrong) {
    CAPTURE(text);
    CHECK(read(dtype, text).status().code() == Code::kInvalidArgument);
  }
  CHECK(read(DataType::kFloat, "1e-60").value().scalar_value<float>() == 0);
  CHECK(read(DataType::kComplex64, "1").status().code() ==
        Code::kUnimplemented);
}

TEST_CASE("a number that only infinity could stand for is refused") {
  const struct {
    DataType dtype;
    const char *largest, *larger;
  } cases[] = {{DataType::kHalf, "65504", "65520"},
               {DataType::kHalf, "-65504", "-65520"},
               {DataType::kHalf, "6.5504e4", "1e39"},
               {DataType::kBFloat16, "3.38e38", "3.4e38"},
               {DataType::kBFloat16, "-3.38e38", "-1e39"},
               {DataType::kFloat, "3.4028234e38", "3.4029e38"},
               {DataType::kFloat, "-3.4028234e38", "-1e400"},
               {DataType::kDouble, "1.7976931348623157e308", "1.8e308"}};
  for (const auto& [dtype, largest, larger] : cases) {
    CAPTURE(larger);
    CHECK(read(dtype, largest).ok());
    const std::string text = fmt::format("[1, {}]", larger);
    CHECK(read(dtype, text).status().message() ==
          fmt::format("[json] {} is too large for {} at byte 4", larger,
                      dtype_name(dtype)));
    for (const char* there : {"Infinity", "-Infinity", "NaN", "1e-400"})
      CHECK(read(dtype, there).ok());
  }
  CHECK(std::signbit(
      read(DataType::kDouble, "-1e-400").value().scalar_value<double>()));
}

TEST_CASE("a number that a type cannot hold exactly is the nearest one") {
  // Whole or not: TensorFlow Serving refused whole ones before version 2.5.
  const std::pair<const char*, float> floats[] = {
      {"16777217", 16777216},
      {"16777217.0", 16777216},
      {"16777219", 16777220},
      {"-16777219", -16777220},
      {"1435774380", 1435774336},
      {"1435774380.0", 1435774336},
      {"18446744073709551615", 18446744073709551616.0f}};
  for (const auto& [text, value] : floats) {
    CAPTURE(text);
    CHECK(read(DataType::kFloat, text).value().scalar_value<float>() == value);
  }
  CHECK(read(DataType::kDouble, "9007199254740993")
            .value()
            .scalar_value<double>() == 9007199254740992.0);
}

TEST_CASE("lists that are no tensor are refused") {
  for (const char* wrong : {"[1, [2]]", "[[1], 2]", "[[1, 2], [3]]",
                            "[[], 1]",  "[1, []]",  "[[[]], []]",
                            "[1",       "[1,]",     "[,1]",
                            "[1 2]",    "1 2",      "",
                            "[1]]",     "01",       "1.",
                            ".5",       "+1",       "-",
                            "1e",       "0x1",      "1-2",
                            "NaNs",     "infinity"}) {
    CAPTURE(wrong);
    CHECK(read(DataType::kFloat, wrong).status().code() ==
          Code::kInvalidArgument);
  }
}

TEST_CASE("an error says where it is") {
  CHECK(read(DataType::kInt32, "[1, x]").status().message() ==
        "[json] there is no number at byte 4");
}

TEST_CASE("values may be in each other a hundred times") {
  const std::string deep = std::string(100, '[') + "1" + std::string(100, ']');
  CHECK(read(DataType::kFloat, deep).value().rank() == 100);
  const std::string deeper(1 << 20, '[');
  for (const std::string& text : {deeper, "[" + deep + "]"}) {
    const Status status = read(DataType::kFloat, text).status();
    CHECK(says(status, "more than 100 values in each other"));
    JsonReader json(text);
    CHECK(says(json.skip(), "more than 100 values in each other"));
  }
}

}  // namespace
}  // namespace tagflow::net::serving
