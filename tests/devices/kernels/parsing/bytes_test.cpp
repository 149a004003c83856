// Tensors, raw and compressed bytes, and JSON in strings.
#include <doctest/doctest.h>

#include "graph/proto/example.pb.h"
#include "tests/devices/files/deflated.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

using tagflow::testing::deflated;

constexpr Code kInvalid = Code::kInvalidArgument;

Result<Outputs> decompress(const std::string& bytes, const char* kind) {
  return run_op("DecodeCompressed", {Tensor::scalar(bytes)},
                {{"compression_type", std::string(kind)}});
}

Result<Outputs> padded(std::initializer_list<std::string> strings,
                       int32_t length, bool little_endian = true) {
  return run_op(
      "DecodePaddedRaw",
      {Tensor::vector<std::string>(strings), Tensor::scalar(length)},
      {{"out_type", DataType::kInt16}, {"little_endian", little_endian}});
}

Result<Outputs> parse_tensor(const std::string& bytes, DataType type) {
  return run_op("ParseTensor", {Tensor::scalar(bytes)}, {{"out_type", type}});
}

}  // namespace

TEST_CASE("compressed strings are expanded") {
  const std::string text(200000, 'x');
  expect_close(decompress(deflated(text, false), "ZLIB"), Tensor::scalar(text));
  const std::string twice = deflated(text, true) + deflated("yz", true);
  expect_close(decompress(twice, "GZIP"), Tensor::scalar(text + "yz"));
  expect_close(decompress("as it is", ""), Tensor::scalar("as it is"));
  expect_close(decompress("", "ZLIB"), Tensor::scalar(""));
  // TensorFlow ignores what follows, too.
  expect_close(decompress(deflated("a", false) + "bc", "ZLIB"),
               Tensor::scalar("a"));
}

TEST_CASE("what is not compressed is refused") {
  expect_error(decompress("abcdef", "ZLIB"), Code::kDataLoss,
               "not compressed by ZLIB: incorrect header check");
  expect_error(decompress(deflated("abc", true) + "bc", "GZIP"),
               Code::kDataLoss, "incorrect header check");
  expect_error(decompress("a", "LZ4"), kInvalid, "\"LZ4\" is unknown");
  expect_error(decompress("a", "NONE"), kInvalid, "is written as \"\"");
}

TEST_CASE("compressed bytes that end too early give what there is") {
  const std::string whole = deflated("abcabcabc", false);
  expect_close(decompress(whole.substr(0, whole.size() - 1), "ZLIB"),
               Tensor::scalar("abcabcabc"));
  expect_close(decompress(whole.substr(0, 4), "ZLIB"), Tensor::scalar("a"));
  expect_close(decompress("x", "ZLIB"), Tensor::scalar(""));
}

TEST_CASE("DecodePaddedRaw cuts and pads") {
  expect_close(padded({"abcdef", "a", ""}, 4),
               Tensor::of<int16_t>({3, 2}, {25185, 25699, 97, 0, 0, 0}));
  expect_close(padded({"abc"}, 4, false),
               Tensor::of<int16_t>({1, 2}, {24930, 25344}));
  expect_error(padded({"abc"}, 3), kInvalid, "multiple of the 2 bytes");
  expect_error(padded({"abc"}, 0), kInvalid, "must be positive");
  expect_error(padded({"abc"}, -2), kInvalid, "must be positive");
}

TEST_CASE("a tensor is written and read as a message") {
  const Tensor floats = Tensor::of<float>({1, 2}, {1, 2});
  const std::string bytes(
      "\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02\"\x08"
      "\0\0\x80?\0\0\0@",
      22);
  expect_close(run_op("SerializeTensor", {floats}), Tensor::scalar(bytes));
  expect_close(parse_tensor(bytes, DataType::kFloat), floats);
  const Tensor strings = Tensor::vector<std::string>({"a", "bcd"});
  const std::string text(
      "\x08\x07\x12\x04\x12\x02\x08\x02"
      "B\x01"
      "aB\x03"
      "bcd");
  expect_close(run_op("SerializeTensor", {strings}), Tensor::scalar(text));
  expect_close(parse_tensor(text, DataType::kString), strings);
  expect_error(parse_tensor(bytes, DataType::kInt64), kInvalid,
               "the tensor is float[1,2], not of int64");
  expect_error(parse_tensor("xx", DataType::kFloat), kInvalid, "TensorProto");
  expect_error(parse_tensor("", DataType::kFloat), kInvalid, "TensorProto");
  // 2^40 zeros in a few bytes.
  expect_error(parse_tensor(std::string("\x08\x01\x12\x09\x12\x07\x08\x80\x80"
                                        "\x80\x80\x80\x20"),
                            DataType::kFloat),
               Code::kResourceExhausted, "ParseTensor");
}

TEST_CASE("an Example in JSON becomes its message") {
  const auto decode = [](const char* text) {
    return run_op("DecodeJSONExample", {Tensor::scalar(text)});
  };
  const auto outputs = decode(
      "{\"features\":{\"feature\":{\"b\":{\"floatList\":{\"value\":[1.5]}},"
      "\"a\":{\"int64_list\":{\"value\":[\"3\",4]}}}}}");
  REQUIRE(outputs.ok());
  tensorflow::Example example;
  REQUIRE(example.ParseFromString((*outputs)[0].scalar_value<std::string>()));
  const auto& features = example.features().feature();
  CHECK(features.at("b").float_list().value(0) == 1.5f);
  CHECK(features.at("a").int64_list().value(1) == 4);
  expect_close(decode("{}"), Tensor::scalar(""));
  for (const char* text :
       {"", "[]", "null", "{\"x\":1}", "{\"features\":", "{} {}"})
    expect_error(decode(text), kInvalid, "is not an Example");
}

TEST_CASE("null is no value of a list of an Example in JSON") {
  const auto decode = [](const std::string& feature) {
    return run_op("DecodeJSONExample",
                  {Tensor::scalar(
                      "{\"features\":{\"feature\":{\"a\":" + feature + "}}}")});
  };
  for (const char* list :
       {"[null]", "[1,null,2]", "[ 1 , null ]", "[[1],null]"}) {
    CAPTURE(list);
    for (const char* kind : {"int64List", "floatList", "bytesList"})
      expect_error(
          decode(fmt::format("{{\"{}\":{{\"value\":{}}}}}", kind, list)),
          kInvalid, "is not an Example");
  }
  expect_error(decode("{\"int64List\":{\"value\":[1,null]}}"), kInvalid,
               "a list has null as an element");
  // Elsewhere it stands for a field that is not set, and in a text for itself.
  for (const std::string feature :
       {R"(null)", R"({"int64List":null})", R"({"int64List":{"value":null}})",
        R"({"bytesList":{"value":["null",'null']}})",
        R"({"bytesList":{"value":[]},"int64List":null})", R"({},"[\"[null":{})",
        R"({},'["null':{})"}) {
    CAPTURE(feature);
    CHECK(decode(feature).ok());
  }
}

}  // namespace tagflow::devices
