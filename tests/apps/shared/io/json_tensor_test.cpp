#include "apps/shared/io/json_tensor.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "graph/float16.h"

namespace tagflow {
namespace {

using io::format_json_literal;
using io::format_string_tensor;
using io::parse_json_file;
using io::parse_json_literal;
using io::parse_string_tensor;

void check_literal(std::string_view text, const Tensor& expected) {
  CAPTURE(text);
  const Result<Tensor> tensor = parse_json_literal(text, expected.dtype());
  if (!tensor.ok()) FAIL(tensor.status().to_string());
  CHECK(identical(*tensor, expected));
}

struct Refusal {
  std::string text;
  DataType dtype;
  std::string message;
};

TEST_CASE("a literal takes the type that is wanted") {
  check_literal("3", Tensor::scalar<int32_t>(3));
  check_literal("3", Tensor::scalar(3.0f));
  check_literal("3", Tensor::scalar(Complex128(3, 0)));
  check_literal("-128", Tensor::scalar<int8_t>(-128));
  check_literal("18446744073709551615", Tensor::scalar(~uint64_t{0}));
  check_literal("true", Tensor::scalar(true));
  check_literal("0.5", Tensor::scalar(Half(0.5f)));
  check_literal("\"text\"", Tensor::scalar("text"));
}

TEST_CASE("a JSON literal's nested lists become dimensions") {
  check_literal("[[1, 2], [3, 4], [5, 6]]",
                Tensor::of<int64_t>({3, 2}, {1, 2, 3, 4, 5, 6}));
  check_literal("[]", Tensor::make(DataType::kFloat, {0}));
  check_literal("[[], []]", Tensor::make(DataType::kFloat, {2, 0}));
}

TEST_CASE("a JSON literal has a form for infinity, NaN and complex numbers") {
  check_literal(
      "[\"inf\", \"-inf\"]",
      Tensor::vector<double>({std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()}));
  check_literal("{\"re\": 1, \"im\": -2}", Tensor::scalar(Complex64(1, -2)));
  check_literal("{\"base64\": \"/w==\"}", Tensor::scalar("\xff"));
  const auto nan = parse_json_literal("\"nan\"", DataType::kFloat);
  REQUIRE(nan.ok());
  CHECK(nan->scalar_value<float>() != nan->scalar_value<float>());
}

TEST_CASE("literals that are not of the type are refused") {
  const std::vector<Refusal> cases = {
      {"", DataType::kFloat, "is not JSON"},
      {"[1,", DataType::kFloat, "is not JSON"},
      {"1 2", DataType::kFloat, "is not JSON"},
      {"nan", DataType::kFloat, "is not JSON"},
      {"1.5", DataType::kInt32, "1.5 is not a value of type int32"},
      {"1.0", DataType::kInt32, "1.0 is not a value of type int32"},
      {"true", DataType::kInt32, "true is not a value of type int32"},
      {"2147483648", DataType::kInt32, "out of range"},
      {"-2147483649", DataType::kInt32, "out of range"},
      {"256", DataType::kUInt8, "out of range"},
      {"-1", DataType::kUInt64, "out of range"},
      {"1e30", DataType::kInt64, "is not a value of type int64"},
      {"1", DataType::kBool, "1 is not a value of type bool"},
      {"null", DataType::kFloat, "null is not a value of type float"},
      {"\"3\"", DataType::kFloat, "\"3\" is not a value of type float"},
      {"1e300", DataType::kFloat, "too large"},
      {"70000", DataType::kHalf, "too large"},
      {"{\"re\": 1}", DataType::kComplex64, "is written"},
      {"3", DataType::kString, "3 is not a value of type string"},
      {"{\"base64\": \"?\"}", DataType::kString, "[base64]"},
      {"[[1, 2], [3]]", DataType::kFloat, "[3] must be a list of length 2"},
      {"[[1, 2], [3, [4]], []]", DataType::kFloat, "not all of depth 2"},
      {"[[1, 2], [[[3]]]]", DataType::kFloat, "a list of 1 must be a list of"},
      {"[1, {\"a\": [2]}]", DataType::kFloat, "an object is not a value of"},
      {"[[1, 2], 3]", DataType::kFloat, "3 must be a list of length 2"},
      {"[1, [2]]", DataType::kFloat, "not all of depth 1"},
      {"[[1,2,3,4],0,0,0,0,0,0]", DataType::kFloat, "ragged"},
      {"1", DataType::kResource, "no literal can be of type resource"},
  };
  for (const Refusal& refusal : cases) {
    CAPTURE(refusal.text);
    const auto tensor = parse_json_literal(refusal.text, refusal.dtype);
    REQUIRE(!tensor.ok());
    CHECK(tensor.status().code() == Code::kInvalidArgument);
    CHECK(tensor.status().to_string().find(refusal.message) !=
          std::string::npos);
  }
}

TEST_CASE("a JSON literal nested deeper than a tensor's rank is refused") {
  const std::string text =
      std::string(100'000, '[') + "1" + std::string(100'000, ']');
  const auto tensor = parse_json_literal(text, DataType::kFloat);
  REQUIRE(!tensor.ok());
  CHECK(tensor.status().message() ==
        "[literal] lists are nested deeper than 254");
}

TEST_CASE("a tensor written as a literal is read back the same") {
  const std::vector<Tensor> tensors = {
      Tensor::of<int32_t>({2, 2}, {1, -2, 3, 4}),
      Tensor::vector<bool>({true, false}),
      Tensor::vector<float>({0.1f, 1e-30f, 3e38f}),
      Tensor::scalar(0.1),
      Tensor::scalar(BFloat16(3.140625f)),
      Tensor::scalar(Complex128(1, -0.5)),
      Tensor::of<std::string>({2}, {"plain \"quoted\"", "\xff\xfe"}),
      Tensor::make(DataType::kInt16, {2, 0}),
  };
  for (const Tensor& tensor : tensors) {
    check_literal(format_json_literal(tensor), tensor);
  }
}

TEST_CASE("a name is a JSON string, also one that is not UTF-8") {
  CHECK(io::json_string("a\"b\n\xc3\xbc") == "\"a\\\"b\\n\xc3\xbc\"");
  CHECK(io::json_string("a\xff") == "\"a\xef\xbf\xbd\"");
}

TEST_CASE("a whole number of a floating-point type is told from an integer") {
  CHECK(format_json_literal(Tensor::vector<float>({1, -2, 0.5f, 1e30f})) ==
        "[1.0, -2.0, 0.5, 1e+30]");
  CHECK(format_json_literal(Tensor::scalar(Half(3))) == "3.0");
  CHECK(format_json_literal(Tensor::scalar(Complex64(1, 2))) ==
        "{\"re\": 1.0, \"im\": 2.0}");
  CHECK(format_json_literal(Tensor::scalar<int64_t>(1)) == "1");
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(format_json_literal(Tensor::vector<double>({infinity, -infinity})) ==
        "[\"inf\", \"-inf\"]");
}

TEST_CASE("a JSON literal with a mistake gets the hint that it needs") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[1, NaN]",
       "[literal] \"[1, NaN]\" is not JSON; JSON cannot express them: write "
       "\"nan\", \"inf\" and \"-inf\", in double quotes"},
      {"-Infinity",
       "[literal] \"-Infinity\" is not JSON; JSON cannot express them: write "
       "\"nan\", \"inf\" and \"-inf\", in double quotes"},
      {"True",
       "[literal] \"True\" is not JSON; truth values are written true and "
       "false"},
      {"hello",
       "[literal] \"hello\" is not JSON; a string is written in double "
       "quotes, within single ones for the shell: '\"text\"'"},
      {"[1, -1e400]",
       "[literal] \"[1, -1e400]\" is not JSON; no number is larger than "
       "1.8e308: write \"inf\", in double quotes"},
      {"[\"a 1e400 b\"", "[literal] \"[\"a 1e400 b\"\" is not JSON"},
      {"\"a 1e400", "[literal] \"\"a 1e400\" is not JSON"},
      {"[1e400, \"inf\"]",
       "[literal] \"[1e400, \"inf\"]\" is not JSON; no number is larger than "
       "1.8e308: write \"inf\", in double quotes"},
      {"[1e5,",
       "[literal] \"[1e5,\" is not JSON; a string is written in "
       "double quotes, within single ones for the shell: '\"text\"'"},
      {"[1,", "[literal] \"[1,\" is not JSON"},
      {"[\"infinite\"", "[literal] \"[\"infinite\"\" is not JSON"},
  };
  for (const auto& [text, message] : cases) {
    const auto tensor = parse_json_literal(text, DataType::kFloat);
    CHECK(tensor.status().message() == message);
  }
}

TEST_CASE("a .json file is a literal, or an object that says its type") {
  const auto list = parse_json_file("[1, 2]\n", DataType::kFloat);
  REQUIRE(list.ok());
  CHECK(identical(*list, Tensor::vector<float>({1, 2})));
  const auto words = parse_json_file("[\"a\", \"b\"]", DataType::kString);
  REQUIRE(words.ok());
  CHECK(identical(*words, Tensor::vector<std::string>({"a", "b"})));
  const auto object = parse_json_file(
      R"({"dtype": "string", "shape": [1], "base64": ["YQ=="]})",
      DataType::kString);
  REQUIRE(object.ok());
  CHECK(identical(*object, Tensor::vector<std::string>({"a"})));
  CHECK(parse_json_file("[1", DataType::kFloat).status().message() ==
        "[literal] \"[1\" is not JSON");
  CHECK(
      parse_json_file("{\"dtype\": 1}", DataType::kFloat).status().message() ==
      "[string tensor] there is no \"shape\"");
}

TEST_CASE("a vast empty tensor is written as an empty list") {
  CHECK(format_json_literal(
            Tensor::make(DataType::kFloat, {int64_t{1} << 40, 0})) == "[]");
}

TEST_CASE("string tensors survive a round trip through a file's text") {
  for (const Tensor& tensor :
       {Tensor::scalar(""), Tensor::of<std::string>({2, 1}, {"a", "\xff"}),
        Tensor::make(DataType::kString, {0, 2})}) {
    const auto again = parse_string_tensor(format_string_tensor(tensor));
    REQUIRE(again.ok());
    CHECK(identical(*again, tensor));
  }
}

TEST_CASE("malformed files of strings are refused") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {R"({"dtype": "string", "shape": []})", "no \"base64\""},
      {R"({"dtype": "int32", "shape": [], "base64": [""]})", "\"dtype\""},
      {R"({"dtype": "string", "shape": 1, "base64": [""]})", "not a list"},
      {R"({"dtype": "string", "shape": [0.5], "base64": [""]})",
       "not an integer"},
      {R"({"dtype": "string", "shape": [-1], "base64": [""]})", "-1"},
      {R"({"dtype": "string", "shape": [18446744073709551615], "base64": []})",
       "not an integer"},
      {R"({"dtype": "string", "shape": [1000000000000], "base64": [""]})",
       "not a list of 1000000000000"},
      {R"({"dtype": "string", "shape": [], "base64": [1]})", "not a string"},
      {R"({"dtype": "string", "shape": [], "base64": ["abc"]})",
       "multiple of 4"},
      {R"({"dtype": "string", "shape": [], "base64": ["a==="]})",
       "not of the alphabet"},
  };
  for (const auto& [given, message] : cases) {
    const auto& text = given;  // no lambda captures a structured binding
    CAPTURE(text);
    const auto tensor = parse_string_tensor(text);
    REQUIRE(!tensor.ok());
    CHECK(tensor.status().to_string().find(message) != std::string::npos);
  }
}

}  // namespace
}  // namespace tagflow
