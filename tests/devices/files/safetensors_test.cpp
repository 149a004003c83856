#include "devices/files/safetensors.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>

#include "devices/files/byte_reader.h"
#include "tests/devices/files/examples.h"
#include "tests/devices/files/memory_files.h"
#include "tests/devices/no_memory.h"

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

TEST_CASE("a safetensors file of the format's own package is read") {
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

TEST_CASE("a safetensors file has the bytes of the format") {
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

TEST_CASE("a safetensors file keeps any tensors") {
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

TEST_CASE("a safetensors file that cannot be written leaves nothing behind") {
  MemoryFiles files;
  const Tensor x = Tensor::vector<float>({1, 2});
  CHECK(save("f", {{"s", Tensor::scalar("text")}}, files).to_string() ==
        "Unimplemented: cannot write \"f\": [safetensors] tensor \"s\" is of "
        "type string, which the format does not have");
  CHECK(save("f", {{"x", x}, {"x", x}}, files).to_string() ==
        "InvalidArgument: cannot write \"f\": [safetensors] tensor \"x\" is "
        "there twice");
  CHECK(save("f", {{"\xff", x}}, files).to_string() ==
        "InvalidArgument: cannot write \"f\": [safetensors] the name of tensor "
        "\"\\xff\" is not UTF-8");
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

TEST_CASE("any byte but 0 of a bool is 1") {
  MemoryFiles files;
  files.put("f", file_of(R"({"x":{"dtype":"BOOL","shape":[4],)"
                         R"("data_offsets":[0,4]}})",
                         std::string_view("\0\2\1\xff", 4)));
  const auto reader = SafetensorsReader::open("f", files);
  REQUIRE(reader.ok());
  const auto tensor = (*reader)->read("x");
  REQUIRE(tensor.ok());
  const auto* bytes = static_cast<const unsigned char*>(tensor->raw());
  CHECK(std::vector<int>(bytes, bytes + 4) == std::vector{0, 1, 1, 1});
}

TEST_CASE("a file that cannot be written leaves the one that was there") {
  const Tensor x = Tensor::vector<float>({1, 2});
  const Tensor y = Tensor::vector<float>({3, 4, 5});
  for (int failing = 0;; ++failing) {
    MemoryFiles files;
    REQUIRE(save("f", {{"x", x}}, files).ok());
    const auto before = files.contents();
    files.recover();
    files.failing = failing;
    const Status status = save("f", {{"y", y}}, files);
    const bool is_old = files.contents() == before;
    if (!is_old)
      CHECK(identical(
          SafetensorsReader::open("f", files).value()->read("y").value(), y));
    CHECK(files.contents().size() == 1);
    if (status.ok()) {
      CHECK_FALSE(is_old);
      CHECK(failing > 3);
      break;
    }
  }
  // Nor does a value that cannot be had, or is another than was said.
  MemoryFiles files;
  REQUIRE(save("f", {{"x", x}}, files).ok());
  const auto before = files.contents();
  for (const bool fails : {true, false}) {
    std::vector<SafetensorsItem> items;
    items.push_back({"y", y.dtype(), y.shape(), [&]() -> Result<Tensor> {
                       if (fails) return error(Code::kUnknown, "no value");
                       return x;
                     }});
    CHECK(write_safetensors("f", std::move(items), {&files, true}).code() ==
          (fails ? Code::kUnknown : Code::kInternal));
    CHECK(files.contents() == before);
  }
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

// The answers are those of the package safetensors 0.8.0.
TEST_CASE("headers are accepted and refused as by safetensors' own package") {
  const std::string_view x =
      R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  const auto of_x = [&](std::string_view more) {
    return fmt::format(R"({{"x":{{{}{}}}}})", x, more);
  };
  const auto half = [](std::string_view name, int begin) {
    return fmt::format(
        R"("{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})", name,
        begin, begin + 4);
  };
  const auto empty = [&](std::string_view shape, int at) {
    return fmt::format(
        R"({{"x":{{{}}},"z":{{"dtype":"I8","shape":{},"data_offsets":[{},{}]}}}})",
        x, shape, at, at);
  };
  const auto with_metadata = [&](std::string_view metadata) {
    return fmt::format(R"({{"__metadata__":{},"x":{{{}}}}})", metadata, x);
  };
  const auto nested = [&](size_t depth) {
    return of_x(R"(,"more":)" + std::string(depth, '[') +
                std::string(depth, ']'));
  };
  const std::string accepted[] = {
      of_x(""),
      // Fields that the format does not have.
      of_x(R"(,"more":1)"),
      of_x(R"(,"more":{"a":[1,null,true,-1,1.5,"s",{"shape":[3]}]})"),
      of_x(R"(,"more":1,"more":[])"),
      of_x(R"(,"more":123456789012345678901234567890)"),
      R"({"x":{"more":null,"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      nested(125),
      // Keys that are there twice: the last one counts.
      fmt::format(R"({{{},"x":{{{}}}}})", half("x", 0), x),
      fmt::format(R"({{"x":{{"dtype":"F32","shape":[3],"data_offsets":[9,1]}},)"
                  R"("x":{{{}}}}})",
                  x),
      with_metadata(R"({"a":"b","a":"c"})"),
      // Metadata.
      with_metadata("{}"),
      with_metadata("null"),
      fmt::format(R"({{"x":{{{}}},"__metadata__":{{"a":"b"}}}})", x),
      // White space, and escapes.
      " \n\t\r" + of_x("") + "\n \t\r",
      R"({ "x" : { "dtype" : "F32" , "shape" : [ 2 ] ,
           "data_offsets" : [ 0 , 8 ] } })",
      R"({"":{"d\u0074ype":"F32","shape":[2],"data_offsets":[0,8]}})",
      fmt::format(R"({{"a\u0000\ud83d\ude00":{{{}}}}})", x),
      // Places in any order, aligned or not, and tensors without elements.
      fmt::format("{{{},{}}}", half("y", 4), half("x", 0)),
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
      R"("x":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
      R"("c":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}})",
      empty("[0]", 0),
      empty("[0]", 8),
      empty("[0,4294967296,4294967296]", 8),
      R"({"x":{"dtype":"F6_E2M3","shape":[8],"data_offsets":[0,6]},)"
      R"("y":{"dtype":"F4","shape":[4],"data_offsets":[6,8]}})",
  };
  for (const std::string& header : accepted) {
    INFO(header);
    CHECK(header_error_of(header) == "OK");
  }
  const std::pair<std::string, std::string_view> refused[] = {
      {of_x(R"(,"shape":[2])"), "\"shape\" of tensor \"x\" is there twice"},
      {of_x(R"(,"more":nul)"), "not JSON"},
      {of_x(R"(,"more":1e999)"), "not JSON"},
      {of_x(",\"more\":\"\xff\""), "not JSON"},
      {of_x(R"(,"more":"\ud800")"), "not JSON"},
      {nested(126), "field \"more\" of tensor \"x\" is nested too deeply"},
      {fmt::format("{{{},{}}}", half("x", 0), half("x", 4)),
       "begins at byte 4 of the data, but those before end at 0"},
      {fmt::format(
           R"({{"x":{{"dtype":"F33","shape":[1],"data_offsets":[0,4]}},)"
           R"("x":{{{}}}}})",
           x),
       "of an unknown type \"F33\""},
      {fmt::format(R"({{"__metadata__":{{}},"__metadata__":null,"x":{{{}}}}})",
                   x),
       "\"__metadata__\" is there twice"},
      {with_metadata(R"({"a":null})"), "null is not expected"},
      {with_metadata("[]"), "a list is not expected"},
      {with_metadata("\"s\""), "a string is not expected"},
      {with_metadata("1"), "a number is not expected"},
      {fmt::format(R"({{"__metadata__":{{{}}}}})", x),
       "a list is not expected"},
      {of_x("") + ",", "not JSON"},
      {R"({"x":null})", "null is not expected"},
      {R"({"x":1})", "a number is not expected"},
      {empty("[0]", 4), "begins at byte"},
      {empty("[0]", 9), "begins at byte"},
      {empty("[4294967296,4294967296,0]", 8), "overflows"},
      {empty("[-0]", 8), "a negative number is not expected"},
      {R"({"x":{"dtype":"F4","shape":[15],"data_offsets":[0,8]}})",
       "cannot have 8 bytes"},
      {R"({"x":{"dtype":"f32","shape":[2],"data_offsets":[0,8]}})",
       "of an unknown type \"f32\""},
      {R"({"x":{"dtype":"C128","shape":[1],"data_offsets":[0,16]}})",
       "of an unknown type"},
  };
  for (const auto& [header, wanted] : refused) {
    INFO(header);
    CHECK(contains(header_error_of(header), wanted));
  }
}

TEST_CASE("of two tensors with one name the last one is read") {
  MemoryFiles files;
  files.put("f",
            file_of(R"({"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                    R"("x":{"dtype":"F64","shape":[1],"data_offsets":[0,8],)"
                    R"("more":{}},"__metadata__":{"a":"b","a":"c"}})",
                    "12345678"));
  const auto reader = SafetensorsReader::open("f", files);
  REQUIRE(reader.ok());
  REQUIRE((*reader)->tensors().size() == 1);
  CHECK((*reader)->read("x").value().dtype() == DataType::kDouble);
  CHECK((*reader)->header().metadata ==
        std::vector<std::pair<std::string, std::string>>{{"a", "c"}});
}

TEST_CASE("a tensor for which there is no memory is named with its file") {
  MemoryFiles files;
  REQUIRE(save("f", {{"x", example(DataType::kFloat, {9, 9})}}, files).ok());
  const auto reader = SafetensorsReader::open("f", files);
  REQUIRE(reader.ok());
  NoMemory allocator;
  CHECK(contains(text_of((*reader)->read("x", allocator)),
                 "ResourceExhausted: [safetensors] tensor \"x\" of \"f\": "));
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
      {"\xef\xbb\xbf{}", "does not begin with"},
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
       "\"dtype\" of tensor \"x\" is there twice"},
      {R"({"x":{"dtype":"F32","shape":[2]}})", "lacks a field"},
      {R"({"x":[]})", "a list is not expected"},
      {R"({"x":{"dtype":{}}})", "an object is not expected"},
      {R"({"__metadata__":{"a":1}})", "a number is not expected"},
      {R"({"__metadata__":{"a":{}}})", "an object is not expected"},
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
