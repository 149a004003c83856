#include "devices/files/safetensors.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "devices/files/byte_reader.h"
#include "tests/devices/files/examples.h"
#include "tests/devices/files/memory_files.h"

namespace tagflow::checkpoint {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

template <class T>
std::string text_of(const Result<T>& result) {
  return result.status().to_string();
}

Status save(const std::string& path,
            const std::vector<std::pair<std::string, Tensor>>& tensors,
            FileSystem& files) {
  std::vector<SafetensorsItem> items;
  for (const auto& [name, tensor] : tensors)
    items.push_back({name, tensor.dtype(), tensor.shape(),
                     [tensor = tensor]() -> Result<Tensor> { return tensor; }});
  return write_safetensors(path, std::move(items), {&files, true});
}

std::string file_of(std::string_view header, std::string_view data) {
  std::string bytes;
  append_number(bytes, uint64_t(header.size()));
  bytes += header;
  bytes += data;
  return bytes;
}

std::string error_of(const std::string& bytes) {
  MemoryFiles files;
  files.put("f", bytes);
  return text_of(SafetensorsReader::open("f", files));
}

// The error of a header, of a file with 8 bytes of data.
std::string header_error_of(std::string_view header) {
  return error_of(file_of(header, "12345678"));
}

TEST_CASE("what safetensors' own package writes is read") {
  const auto reader =
      SafetensorsReader::open(recorded_path("types.safetensors"));
  INFO(text_of(reader));
  REQUIRE(reader.ok());
  int count = 2;
  for (const DataType dtype : example_types()) {
    const auto tensor = (*reader)->read("of/" + numpy_name(dtype));
    if (dtype == DataType::kString || dtype == DataType::kComplex128 ||
        dtype == DataType::kBFloat16) {
      CHECK(tensor.status().code() == Code::kNotFound);
      continue;
    }
    ++count;
    INFO(numpy_name(dtype));
    REQUIRE(tensor.ok());
    CHECK(identical(*tensor, example(dtype, {2, 3})));
  }
  CHECK((*reader)->tensors().size() == size_t(count));
  CHECK(identical((*reader)->read("scalar").value(),
                  example(DataType::kFloat, {})));
  CHECK(identical((*reader)->read("empty").value(),
                  example(DataType::kInt32, {0, 3})));
}

TEST_CASE("a file is these bytes") {
  MemoryFiles files;
  REQUIRE(save("f",
               {{"b", Tensor::vector<uint8_t>({1, 2})},
                {"a", Tensor::scalar(1.0f)}},
               files)
              .ok());
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  CHECK(files.contents()["f"] ==
        file_of(header + padding, std::string_view("\0\0\x80\x3f\1\2", 6)));
}

TEST_CASE("any tensors survive") {
  CHECK(rc::check([] {
    std::map<std::string, Tensor> tensors;
    const int count = *rc::gen::inRange(0, 8);
    for (int i = 0; i < count; ++i) {
      const auto types = example_types();
      const DataType dtype = types[*rc::gen::inRange<size_t>(0, types.size())];
      if (safetensors_type(dtype).empty()) continue;
      Shape shape;
      for (int d = *rc::gen::inRange(0, 4); d > 0; --d)
        shape.add_dim(*rc::gen::inRange<int64_t>(0, 6));
      tensors.insert_or_assign(
          *rc::gen::container<std::string>(rc::gen::inRange(' ', '~')),
          example(dtype, shape));
    }
    MemoryFiles files;
    files.most_per_write = *rc::gen::element<size_t>(1, 7, SIZE_MAX);
    RC_ASSERT(save("f", {tensors.begin(), tensors.end()}, files).ok());
    const auto reader = SafetensorsReader::open("f", files);
    RC_ASSERT(reader.ok());
    RC_ASSERT((*reader)->tensors().size() == tensors.size());
    for (const auto& [name, tensor] : tensors)
      RC_ASSERT(identical((*reader)->read(name).value(), tensor));
  }));
}

TEST_CASE("what cannot be written is refused, and leaves nothing behind") {
  MemoryFiles files;
  const Tensor x = Tensor::vector<float>({1, 2});
  CHECK(save("f", {{"s", Tensor::scalar("text")}}, files).to_string() ==
        "Unimplemented: [safetensors] tensor \"s\" is of type string, which "
        "the format does not have");
  CHECK(save("f", {{"x", x}, {"x", x}}, files).to_string() ==
        "InvalidArgument: [safetensors] tensor \"x\" is there twice");
  CHECK(contains(save("f", {{"\xff", x}}, files).to_string(), "is not UTF-8"));
  CHECK(contains(save("f", {{"__metadata__", x}}, files).to_string(),
                 "is not a name of a tensor"));
  CHECK(files.contents().empty());
  for (int failing = 0;; ++failing) {
    files.recover();
    files.failing = failing;
    if (save("f", {{"x", x}}, files).ok()) break;
    CHECK(files.contents().empty() == !files.exists("f"));
    static_cast<void>(files.remove("f"));
  }
}

TEST_CASE("a header may have metadata, and spaces at its end") {
  MemoryFiles files;
  files.put("f", file_of(R"({"__metadata__":{"format":"pt"},"x":{"shape":[1],)"
                         R"("data_offsets":[0,8],"dtype":"F64"}}   )",
                         "12345678"));
  const auto reader = SafetensorsReader::open("f", files);
  INFO(text_of(reader));
  REQUIRE(reader.ok());
  CHECK((*reader)->header().metadata ==
        std::vector<std::pair<std::string, std::string>>{{"format", "pt"}});
  CHECK((*reader)->read("x").ok());
  CHECK(text_of((*reader)->read("y")) ==
        "NotFound: [safetensors] there is no tensor \"y\" in \"f\", which has "
        "1 tensors; did you mean \"x\"?");
}

TEST_CASE("types that no tensor has are listed, and not read") {
  MemoryFiles files;
  files.put("f", file_of(R"({"x":{"dtype":"F4","shape":[4,4],)"
                         R"("data_offsets":[0,8]}})",
                         "12345678"));
  const auto reader = SafetensorsReader::open("f", files);
  REQUIRE(reader.ok());
  CHECK((*reader)->tensors()[0].dtype() == DataType::kInvalid);
  CHECK(contains(text_of((*reader)->read("x")),
                 "Unimplemented: [safetensors] tensor \"x\" of \"f\" is of "
                 "type F4"));
}

TEST_CASE("files that are cut short are refused") {
  CHECK(contains(error_of("1234567"), "7 bytes are not a safetensors file"));
  std::string huge;
  append_number(huge, uint64_t{1} << 62);
  CHECK(contains(error_of(huge), "the limit is 100000000"));
  std::string longer;
  append_number(longer, uint64_t{1000});
  CHECK(contains(error_of(longer + "{}"), "DataLoss"));
  const std::string whole = bytes_of(recorded_path("types.safetensors"));
  for (size_t i = 0; i < whole.size(); ++i)
    CHECK(error_of(whole.substr(0, i)) != "OK");
  CHECK(contains(error_of(whole + "x"), "the tensors have"));
}

TEST_CASE("headers that mean harm are refused") {
  const auto entry = [](std::string_view shape, std::string_view offsets,
                        std::string_view type = "\"F32\"") {
    return fmt::format(R"({{"x":{{"dtype":{},"shape":{},"data_offsets":{}}}}})",
                       type, shape, offsets);
  };
  REQUIRE(header_error_of(entry("[2]", "[0,8]")) == "OK");
  const std::pair<std::string, std::string_view> cases[] = {
      {"", "does not begin with"},
      {" {}", "does not begin with"},
      {"{", "the header is not JSON"},
      {"{} x", "the header is not JSON"},
      {"{\"\xff\":{}}", "the header is not JSON"},
      {"{}", "the tensors have 0 bytes, but the file has 8"},
      {entry("[2]", "[0,7]"), "cannot have 7 bytes"},
      {entry("[3]", "[0,8]"), "cannot have 8 bytes"},
      {entry("[4294967296,4294967296]", "[0,8]"), "overflow"},
      {entry("[4611686018427387904]", "[0,8]"), "cannot have 8 bytes"},
      {entry("[18446744073709551615]", "[0,8]"), "a dimension of"},
      {entry("[-2]", "[0,8]"), "a negative number is not expected"},
      {entry("[2.0]", "[0,8]"), "a fraction is not expected"},
      {entry("[2]", "[1,9]"), "begins at byte 1 of the data"},
      {entry("[2]", "[8,0]"), "are not a begin and an end"},
      {entry("[2]", "[0]"), "are not a begin and an end"},
      {entry("[2]", "[0,4,8]"), "are not a begin and an end"},
      {entry("[2]", "[0,[8]]"), "a list is not expected"},
      {entry("[2]", "\"0\""), "a string is not expected"},
      {entry("2", "[0,8]"), "a number is not expected"},
      {entry("[2]", "[0,8]", "\"F33\""), "of an unknown type \"F33\""},
      {entry("[2]", "[0,8]", "32"), "a number is not expected"},
      {entry("[2]", "[0,8]", "[\"F32\"]"), "a list is not expected"},
      {entry("[2]", "[0,8]", "null"), "null is not expected"},
      {entry("[2]", "[0,8]", "\"F32\",\"dtype\":\"F32\""),
       "\"dtype\" is there twice"},
      {entry("[2]", "[0,8]", "\"F32\",\"more\":1"), "unknown field \"more\""},
      {R"({"x":{"dtype":"F32","shape":[2]}})", "lacks a field"},
      {R"({"x":[]})", "a list is not expected"},
      {R"({"x":{"dtype":{}}})", "an object is not expected"},
      {R"({"__metadata__":{"a":1}})", "a number is not expected"},
      {R"({"__metadata__":{"a":{}}})", "an object is not expected"},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "\"x\" is there twice"},
      {R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("y":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       "begins at byte 0 of the data, but those before end at 4"},
  };
  for (const auto& [header, wanted] : cases) {
    INFO(header);
    CHECK(contains(header_error_of(header), wanted));
  }
  CHECK(contains(header_error_of(entry("[2]", "[0,8]") + '\0'),
                 "has a byte that is zero"));
  // Deeper than any stack.
  CHECK(header_error_of(R"({"x":)" + std::string(1'000'000, '[')) != "OK");
  std::string ones = "[1";
  for (int i = 0; i < 300; ++i) ones += ",1";
  CHECK(contains(header_error_of(entry(ones + "]", "[0,8]")),
                 "too many dimensions"));
}

}  // namespace
}  // namespace tagflow::checkpoint
