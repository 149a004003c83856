// DecodeProtoV2 and EncodeProto: sources of descriptors, errors, and shapes.
// parsing.txt has what TensorFlow makes of messages.
#include <doctest/doctest.h>

#include <fstream>

#include "graph/op_registry.h"
#include "graph/proto/example.pb.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/temp_folder.h"

namespace tagflow::devices {

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;
using Names = std::vector<std::string>;
using Types = std::vector<DataType>;

// Decodes messages of the program.
Result<Outputs> decode(const Tensor& messages, const std::string& type,
                       const Names& fields, const Types& types,
                       AttrMap attrs = {}) {
  attrs["message_type"] = type;
  attrs["field_names"] = fields;
  attrs["output_types"] = types;
  return run_op("DecodeProtoV2", {messages}, std::move(attrs));
}

Result<Outputs> encode(const Tensor& sizes, const std::vector<Tensor>& values,
                       const std::string& type, const Names& fields) {
  std::vector<Tensor> inputs{sizes};
  inputs.insert(inputs.end(), values.begin(), values.end());
  return run_op("EncodeProto", inputs,
                {{"message_type", type}, {"field_names", fields}});
}

std::string some_floats() {
  tensorflow::FloatList list;
  list.add_value(1.5f);
  list.add_value(-2);
  return list.SerializeAsString();
}

}  // namespace

TEST_CASE("messages of the program need no descriptor") {
  const auto outputs =
      decode(Tensor::vector<std::string>({some_floats(), ""}),
             "tensorflow.FloatList", {"value"}, {DataType::kFloat});
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  expect_close((*outputs)[0], Tensor::of<int32_t>({2, 1}, {2, 0}));
  expect_close((*outputs)[1], Tensor::of<float>({2, 2}, {1.5f, -2, 0, 0}));
}

TEST_CASE("what was decoded is encoded again") {
  const std::string message = some_floats();
  const auto outputs =
      decode(Tensor::vector<std::string>({message}), "tensorflow.FloatList",
             {"value"}, {DataType::kDouble});
  REQUIRE(outputs.ok());
  expect_close(
      encode((*outputs)[0], {(*outputs)[1]}, "tensorflow.FloatList", {"value"}),
      Tensor::vector<std::string>({message}));
}

TEST_CASE("a descriptor may be in a file, which counts as one that is used") {
  const tagflow::testing::TempFolder folder("proto");
  const std::string path = (folder.path() / "d").string();
  std::ofstream(path, std::ios::binary) << "\x0a\x13\x0a\x01"
                                           "f\x22\x0e\x0a\x01M\x12\x09\x0a\x01"
                                           "a\x18\x01\x20\x01\x28\x05";
  const Tensor message = Tensor::vector<std::string>({"\x08\x07"});
  expect_close((*decode(message, "M", {"a"}, {DataType::kInt32},
                        {{"descriptor_source", path}}))[1],
               Tensor::of<int32_t>({1, 1}, {7}));
  expect_error(decode(message, "M", {"a"}, {DataType::kInt32},
                      {{"descriptor_source", path + "x"}}),
               kInvalid, path + "x");
  std::ofstream(path, std::ios::binary) << "no descriptor";
  expect_error(decode(message, "M", {"a"}, {DataType::kInt32},
                      {{"descriptor_source", path}}),
               kInvalid, "are not a FileDescriptorSet");
  const auto& registry = graph::OpRegistry::global();
  for (const char* op : {"DecodeProtoV2", "EncodeProto"}) {
    CHECK(registry.uses_files(op, {{"descriptor_source", path}}));
    for (const char* source : {"", "local://", "bytes://"})
      CHECK_FALSE(registry.uses_files(
          op, {{"descriptor_source", std::string(source)}}));
  }
}

TEST_CASE("errors name the message, the type and the field") {
  const Tensor message = Tensor::vector<std::string>({some_floats(), "\x0d"});
  const std::string type = "tensorflow.FloatList";
  expect_error(decode(message, type, {"value"}, {DataType::kFloat}),
               Code::kDataLoss, "message 1 is not a message of type " + type);
  expect_error(decode(message, type, {"value"}, {DataType::kFloat},
                      {{"sanitize", true}}),
               Code::kDataLoss, "message 1 has 1 bytes that are not of type");
  expect_error(
      decode(Tensor::vector<std::string>({"value: x"}), type, {"value"},
             {DataType::kFloat}, {{"message_format", std::string("text")}}),
      Code::kDataLoss, "line 1, column 8");
  expect_error(decode(message, "No", {}, {}), kInvalid,
               "there is no message type \"No\"");
  expect_error(decode(message, type, {"nope"}, {DataType::kFloat}), kInvalid,
               type + " has no field \"nope\"");
  expect_error(decode(message, type, {"value"}, {DataType::kInt32}), kInvalid,
               "tensorflow.FloatList.value is of type float, which cannot "
               "become int32");
  expect_error(decode(message, type, {"value"}, {}), kInvalid,
               "1 field_names for 0 output_types");
  expect_error(
      decode(message, type, {}, {}, {{"message_format", std::string("json")}}),
      kInvalid, "\"binary\" or \"text\"");
  expect_error(decode(Tensor::make(DataType::kString, {0}), type, {}, {}),
               kInvalid, "at least");
  const auto values = Tensor::of<float>({1, 2}, {1, 2});
  expect_error(
      encode(Tensor::of<int32_t>({1, 1}, {3}), {values}, type, {"value"}),
      kInvalid, "message 0 has 3 values of field");
  expect_error(
      encode(Tensor::of<int32_t>({1, 2}, {1, 1}), {values}, type, {"value"}),
      kInvalid, "sizes must be of shape [1,1]");
  expect_error(encode(Tensor::of<int32_t>({1, 1}, {1}),
                      {Tensor::of<int32_t>({1, 1}, {1})}, type, {"value"}),
               kInvalid, "which int32 cannot become");
  expect_error(encode(Tensor::of<int32_t>({1}, {1}),
                      {Tensor::of<float>({1}, {1})}, type, {"value"}),
               kInvalid, "at least two dimensions");
}

TEST_CASE("groups without an end are damaged, however many") {
  expect_error(decode(Tensor::vector<std::string>({std::string(1000, '\x23')}),
                      "tensorflow.Int64List", {"value"}, {DataType::kInt64}),
               Code::kDataLoss, "is not a message");
}

}  // namespace tagflow::devices
