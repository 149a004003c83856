// DecodeProtoV2 and EncodeProto: sources of descriptors, errors, and shapes.
// parsing.txt has what TensorFlow makes of messages.
#include <doctest/doctest.h>
#include <google/protobuf/descriptor.pb.h>
#include <pthread.h>

#include <fstream>
#include <functional>

#include "devices/kernels/parsing/proto_nesting.h"
#include "devices/tracking_allocator.h"
#include "graph/op_registry.h"
#include "graph/proto/example.pb.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/one_step.h"
#include "tests/temp_folder.h"

namespace tagflow::devices {

namespace {

using namespace std::string_literals;

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

namespace pb = google::protobuf;

// On a thread with a stack of 1 MiB.
void on_small_stack(std::function<void()> run) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t(1) << 20);
  pthread_t thread;
  const auto start = [](void* body) -> void* {
    (*static_cast<std::function<void()>*>(body))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, start, &run) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

pb::FieldDescriptorProto* add_field(pb::DescriptorProto& type,
                                    const std::string& name,
                                    const std::string& of) {
  pb::FieldDescriptorProto* field = type.add_field();
  field->set_name(name);
  field->set_number(type.field_size());
  field->set_label(pb::FieldDescriptorProto::LABEL_OPTIONAL);
  field->set_type(pb::FieldDescriptorProto::TYPE_MESSAGE);
  field->set_type_name(of);
  return field;
}

// M has M1 has M2 and so on; all but M are nested in a type of a chain.
pb::FileDescriptorSet chain_of_types(int count) {
  pb::FileDescriptorSet set;
  pb::FileDescriptorProto* file = set.add_file();
  file->set_name("f");
  pb::DescriptorProto* type = file->add_message_type();
  type->set_name("M");
  pb::DescriptorProto* outer = nullptr;
  for (int i = 1; i < count; ++i) {
    const std::string name = "M" + std::to_string(i);
    const bool is_nested = outer != nullptr;
    add_field(*type, "next", is_nested ? ".M1." + name : "." + name);
    type = is_nested ? outer->add_nested_type() : file->add_message_type();
    if (!is_nested) outer = type;
    type->set_name(name);
  }
  return set;
}

// The last file sees the type of the first through all between them.
pb::FileDescriptorSet chain_of_files(int count) {
  pb::FileDescriptorSet set;
  for (int i = 0; i < count; ++i) {
    pb::FileDescriptorProto* file = set.add_file();
    file->set_name("f" + std::to_string(i));
    if (i > 0) {
      file->add_dependency("f" + std::to_string(i - 1));
      file->add_public_dependency(0);
    }
  }
  set.mutable_file(0)->add_message_type()->set_name("First");
  pb::DescriptorProto* type = set.mutable_file(count - 1)->add_message_type();
  type->set_name("M");
  add_field(*type, "a", ".First");
  return set;
}

// Reads an empty M of the set.
Result<Outputs> decode_empty(const std::string& descriptor,
                             const char* format = "binary") {
  return decode(Tensor::vector<std::string>({""}), "M", {}, {},
                {{"descriptor_source", "bytes://" + descriptor},
                 {"message_format", std::string(format)},
                 {"sanitize", true}});
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

TEST_CASE("chains of types and files fit into a small stack, or are refused") {
  on_small_stack([] {
    for (const char* format : {"binary", "text"}) {
      for (const auto& set : {chain_of_types(1024), chain_of_files(4096)}) {
        const auto read = decode_empty(set.SerializeAsString(), format);
        CHECK_MESSAGE(read.ok(), read.status().to_string());
      }
      expect_error(
          decode_empty(chain_of_types(1025).SerializeAsString(), format),
          kInvalid, "1025 message types are more than 1024");
      expect_error(
          decode_empty(chain_of_files(4097).SerializeAsString(), format),
          kInvalid, "4097 files are more than 4096");
    }
  });
}

TEST_CASE("a descriptor with uninterpreted options is refused") {
  pb::FileDescriptorSet set = chain_of_types(3);
  pb::FileDescriptorProto* file = set.mutable_file(0);
  pb::FileDescriptorProto own;
  pb::FileDescriptorProto::descriptor()->file()->CopyTo(&own);
  *set.add_file() = *file;
  *set.mutable_file(0) = own;
  file = set.mutable_file(1);
  file->add_dependency(own.name());
  pb::DescriptorProto* type = file->mutable_message_type(0);
  add_field(*type, "a", ".M");
  pb::FieldDescriptorProto* extension = file->add_extension();
  pb::DescriptorProto holder;
  *extension = *add_field(holder, "deep", ".M");
  extension->set_number(50000);
  extension->set_extendee(".google.protobuf.MessageOptions");
  const auto whole = decode_empty(set.SerializeAsString());
  CHECK_MESSAGE(whole.ok(), whole.status().to_string());
  pb::UninterpretedOption* option =
      type->mutable_options()->add_uninterpreted_option();
  option->add_name()->set_name_part("deep");
  option->mutable_name(0)->set_is_extension(true);
  std::string nested;
  for (int i = 0; i < 200000; ++i) nested += "a{";
  option->set_aggregate_value(nested);
  expect_error(decode_empty(set.SerializeAsString()), kInvalid,
               "there are uninterpreted options");
}

TEST_CASE("a descriptor is no longer than 64 MiB") {
  expect_error(decode_empty(std::string((size_t(1) << 26) + 1, '\0')), kInvalid,
               "67108865 bytes are more than 67108864");
}

TEST_CASE("messages are counted before they are parsed") {
  const auto count = [](std::string_view bytes, const pb::Descriptor& type) {
    return most_messages(bytes, type);
  };
  const pb::Descriptor& type = *pb::FileDescriptorSet::descriptor();
  CHECK(count("", type) == 1);
  for (const int length : {1, 2, 50}) {
    pb::FileDescriptorSet set = chain_of_types(length);
    // A file, its types, and all fields but the last one's.
    const size_t wanted = 1 + 1 + size_t(length) + size_t(length) - 1;
    CHECK(count(set.SerializeAsString(), type) == wanted);
    // Numbers and unknown bytes are none.
    CHECK(count(set.SerializeAsString() + "\x08\x01\x12\x02\x0a\x00"s, type) ==
          wanted);
  }
  // What is damaged may have as many as fit.
  CHECK(count("\x0a\x00\x0a\x00\x0a"s, type) == 3);
  CHECK(count("\x0a\x00\x04\x0a\x00\x0a\x00"s, type) == 4);
  CHECK(count(std::string(1000, '\x0b'), type) == 501);
  pb::FileDescriptorSet set = chain_of_types(1);
  pb::DescriptorProto* group = set.mutable_file(0)->mutable_message_type(0);
  add_field(*group, "g", ".M")->set_type(pb::FieldDescriptorProto::TYPE_GROUP);
  group->mutable_field(0)->set_name("m");
  pb::DescriptorPool pool;
  const pb::FileDescriptor* const file = pool.BuildFile(set.file(0));
  REQUIRE(file != nullptr);
  CHECK(count("\x0b\x0b\x0c\x0b\x0c\x0c\x0a\x00"s, *file->message_type(0)) ==
        4);
}

TEST_CASE("messages of a wide type count in the memory that there is") {
  const auto memory = TrackingAllocator::make({"here", 4 << 20});
  pb::FileDescriptorSet set = chain_of_types(2);
  pb::FileDescriptorProto* file = set.mutable_file(0);
  file->mutable_message_type(0)->mutable_field(0)->set_label(
      pb::FieldDescriptorProto::LABEL_REPEATED);
  for (int i = 0; i < 1000; ++i) {
    pb::FieldDescriptorProto* field =
        file->mutable_message_type(1)->add_field();
    field->set_name("f" + std::to_string(i));
    field->set_number(i + 1);
    field->set_label(pb::FieldDescriptorProto::LABEL_OPTIONAL);
    field->set_type(pb::FieldDescriptorProto::TYPE_INT64);
  }
  const auto read = [&](std::string message, const char* format) {
    std::vector<Tensor> inputs{
        Tensor::vector<std::string>({"", std::move(message)})};
    return run_unshared(
        "DecodeProtoV2", inputs,
        {{"message_type", std::string("M")},
         {"descriptor_source", "bytes://" + set.SerializeAsString()},
         {"field_names", Names{}},
         {"output_types", Types{}},
         {"message_format", std::string(format)},
         {"sanitize", true}},
        *memory);
  };
  const auto repeated = [](const char* one, size_t size, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all.append(one, size);
    return all;
  };
  for (const int count : {100, 1000}) {
    const auto binary = read(repeated("\x0a\x00", 2, count), "binary");
    const auto text = read(
        repeated("next{}", 6, count / 2) + repeated("next<>", 6, count / 2),
        "text");
    for (const auto* each : {&binary, &text}) {
      if (count == 100) {
        CHECK_MESSAGE(each->ok(), each->status().to_string());
      } else {
        expect_error(*each, Code::kResourceExhausted,
                     "[DecodeProtoV2] message 1 cannot be read: out of memory: "
                     "a parser of 1001 messages needs");
      }
    }
  }
  // So does the descriptor itself.
  set.Clear();
  for (int i = 0; i < 100000; ++i) set.add_file();
  expect_error(read("", "binary"), Code::kResourceExhausted,
               "[DecodeProtoV2] out of memory: a parser of the descriptor "
               "needs");
  CHECK(memory->ledger().in_use() == 0);
}

}  // namespace tagflow::devices
