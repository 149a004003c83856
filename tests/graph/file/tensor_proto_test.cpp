#include "graph/file/tensor_proto.h"

#include <doctest/doctest.h>
#include <google/protobuf/text_format.h>

#include <limits>

#include "graph/dtype_visit.h"
#include "graph/handle.h"
#include "graph/proto/tensor.pb.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

constexpr int64_t kMebibyte = 1 << 20;

Result<Tensor> decode(const std::string& text, int64_t budget = kMebibyte) {
  tensorflow::TensorProto proto;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return tensor_from_proto(proto, &budget);
}

Tensor decoded(const std::string& text) { return must(decode(text)); }

Tensor through_proto(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  must(tensor_to_proto(tensor, &proto));
  int64_t budget = kMebibyte;
  return must(tensor_from_proto(proto, &budget));
}

const std::string kThree = " tensor_shape { dim { size: 3 } } ";

}  // namespace

TEST_CASE("tensors of every plain type survive a round trip") {
  for (int number = 1; number <= 23; ++number) {
    const DataType type = DataType(number);
    if (!is_plain(type)) continue;
    CAPTURE(dtype_name(type));
    for (const Shape& shape :
         {Shape({}), Shape({0}), Shape({3}), Shape({2, 3, 4})}) {
      Tensor tensor = Tensor::make(type, shape);
      auto* bytes = static_cast<uint8_t*>(tensor.mutable_raw());
      for (size_t i = 0; i < tensor.bytes(); ++i)
        bytes[i] = type == DataType::kBool ? i % 2 : uint8_t(37 * i + 11);
      CHECK(identical(through_proto(tensor), tensor));
    }
  }
}

TEST_CASE("NaNs keep their bits, and zeros their sign") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float value : {nan, -nan, -0.0F, 1e-45F}) {
    const Tensor tensor = Tensor::scalar(value);
    CHECK(identical(through_proto(tensor), tensor));
  }
}

TEST_CASE("tensors of strings survive a round trip") {
  Tensor tensor = Tensor::make(DataType::kString, {20});
  for (int i = 0; i < 20; ++i)
    tensor.mutable_data<std::string>()[i] = std::string(size_t(i), char(i));
  CHECK(identical(through_proto(tensor), tensor));
}

TEST_CASE("a tensor of fewer values than elements repeats the last one") {
  CHECK(decoded("dtype: DT_FLOAT" + kThree + "float_val: 7").to_string() ==
        "float[3] {7 7 7}");
  CHECK(decoded("dtype: DT_INT64" + kThree + "int64_val: [1, 2]").to_string() ==
        "int64[3] {1 2 2}");
  CHECK(decoded("dtype: DT_STRING" + kThree + "string_val: 'a'").to_string() ==
        "string[3] {\"a\" \"a\" \"a\"}");
  CHECK(decoded("dtype: DT_BOOL" + kThree).to_string() ==
        "bool[3] {false false false}");
  CHECK(decoded("dtype: DT_STRING tensor_shape { dim { size: 0 } } "
                "string_val: ''")
            .to_string() == "string[0] {}");
}

TEST_CASE("a tensor's values are read from the field of its type") {
  auto text = [](const std::string& proto) {
    return decoded(proto).to_string();
  };
  CHECK(text("dtype: DT_DOUBLE double_val: 0.5") == "double[] 0.5");
  CHECK(text("dtype: DT_INT32 int_val: -5") == "int32[] -5");
  CHECK(text("dtype: DT_UINT8 int_val: 255") == "uint8[] 255");
  CHECK(text("dtype: DT_INT8 int_val: -128") == "int8[] -128");
  CHECK(text("dtype: DT_UINT16 int_val: 65535") == "uint16[] 65535");
  CHECK(text("dtype: DT_HALF half_val: 15360") == "half[] 1");
  CHECK(text("dtype: DT_BFLOAT16 half_val: 16256") == "bfloat16[] 1");
  CHECK(text("dtype: DT_COMPLEX64 scomplex_val: [1, 2]") ==
        "complex64[] (1,2)");
  CHECK(text("dtype: DT_COMPLEX128 dcomplex_val: [1, 2]") ==
        "complex128[] (1,2)");
  CHECK(text("dtype: DT_UINT32 uint32_val: 4294967295") ==
        "uint32[] 4294967295");
  CHECK(text("dtype: DT_UINT64 uint64_val: 18446744073709551615") ==
        "uint64[] 18446744073709551615");
  CHECK(decoded("dtype: DT_QUINT8 int_val: 200").describe() == "quint8[]");
}

TEST_CASE("tensor_content is row-major and little-endian") {
  CHECK(decoded("dtype: DT_INT32 tensor_shape { dim { size: 2 } } "
                "tensor_content: '\\001\\000\\000\\000\\000\\001\\000\\000'")
            .to_string() == "int32[2] {1 256}");
  CHECK(decoded("dtype: DT_STRING tensor_shape { dim { size: 2 } } "
                "tensor_content: '\\002\\001abc'")
            .to_string() == "string[2] {\"ab\" \"c\"}");
}

TEST_CASE("malformed tensors are refused, and say why") {
  struct Row {
    std::string text;
    Code code;
    std::string message;
  };
  const std::string huge =
      "dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } } "
      "float_val: 1";
  const std::vector<Row> rows = {
      {"", Code::kUnimplemented, "a tensor of invalid(0) is not supported"},
      {huge, Code::kResourceExhausted,
       "a tensor of float[1099511627776] is too large: 1099511627776 elements "
       "of 4 bytes, 1048576 bytes are left for constants"},
      {"dtype: DT_STRING tensor_shape { dim { size: 30000 } } string_val: "
       "'0123456789'",
       Code::kResourceExhausted,
       "a tensor of string[30000] is too large: 29999 elements of 10 bytes, "
       "88576 bytes are left for constants"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } "
       "dim { size: 4294967296 } }",
       Code::kInvalidArgument,
       "[shape] the number of elements of [4294967296,4294967296] overflows"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: -1 } }",
       Code::kInvalidArgument,
       "a tensor of float has the shape [?], which is not known"},
      {"dtype: DT_FLOAT tensor_shape { dim { size: -7 } }",
       Code::kInvalidArgument, "[shape] negative dimension -7 in [-7]"},
      {"dtype: DT_FLOAT tensor_shape { unknown_rank: true }",
       Code::kInvalidArgument,
       "a tensor of float has the shape <unknown>, which is not known"},
      {"dtype: DT_FLOAT tensor_shape { unknown_rank: true dim {} }",
       Code::kInvalidArgument, "a shape of unknown rank has 1 dimensions"},
      {"dtype: DT_FLOAT" + kThree + "float_val: [1, 2, 3, 4]",
       Code::kInvalidArgument,
       "a tensor of float[3] has 4 values for 3 "
       "elements"},
      {"dtype: DT_FLOAT" + kThree + "tensor_content: 'abcd'", Code::kDataLoss,
       "tensor_content of a tensor of float[3] has 4 bytes, 12 are wanted"},
      {"dtype: DT_BOOL" + kThree + "tensor_content: '\\000\\001\\002'",
       Code::kDataLoss,
       "tensor_content of a tensor of bool[3] has a byte that is not a bool"},
      {"dtype: DT_STRING" + kThree + "tensor_content: '\\001\\001'",
       Code::kDataLoss,
       "tensor_content of a tensor of string[3] ends inside a string"},
      {"dtype: DT_STRING tensor_content: '\\003ab'", Code::kDataLoss,
       "tensor_content of a tensor of string[] ends inside a string"},
      {"dtype: DT_STRING tensor_content: '\\001ab'", Code::kDataLoss,
       "tensor_content of a tensor of string[] has 1 bytes too many"},
      {"dtype: DT_STRING tensor_content: '\\377\\377\\377\\377\\377\\377'",
       Code::kDataLoss,
       "tensor_content of a tensor of string[] ends inside a string"},
      {"dtype: DT_UINT8 int_val: 256", Code::kInvalidArgument,
       "value 0 of a tensor of uint8[] does not fit the type"},
      {"dtype: DT_INT8 int_val: 128", Code::kInvalidArgument,
       "value 0 of a tensor of int8[] does not fit the type"},
      {"dtype: DT_HALF half_val: 65536", Code::kInvalidArgument,
       "value 0 of a tensor of half[] does not fit the type"},
      {"dtype: DT_BFLOAT16 half_val: -1", Code::kInvalidArgument,
       "value 0 of a tensor of bfloat16[] does not fit the type"},
      {"dtype: DT_COMPLEX64 scomplex_val: 1", Code::kInvalidArgument,
       "a tensor of complex64[] has half a complex value"},
      {"dtype: DT_RESOURCE resource_handle_val { name: 'v' }",
       Code::kUnimplemented,
       "a tensor of resource cannot be read: its handles mean nothing outside "
       "the process that wrote it"},
      {"dtype: DT_VARIANT variant_val {}", Code::kUnimplemented,
       "a tensor of variant cannot be read: its handles mean nothing outside "
       "the process that wrote it"},
      {"dtype: DT_FLOAT_REF float_val: 1", Code::kUnimplemented,
       "a tensor of float_ref is not supported"},
      {"dtype: DT_FLOAT8_E5M2", Code::kUnimplemented,
       "a tensor of invalid(24) is not supported"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(message_of(decode(row.text).status(), row.code) == row.message);
  }
}

TEST_CASE("the constants of a file share one budget") {
  tensorflow::TensorProto proto;
  must(tensor_to_proto(Tensor::make(DataType::kFloat, {100}), &proto));
  int64_t budget = 1000;
  CHECK(tensor_from_proto(proto, &budget).ok());
  CHECK(budget == 600);
  CHECK(tensor_from_proto(proto, &budget).ok());
  CHECK(tensor_from_proto(proto, &budget).status().code() ==
        Code::kResourceExhausted);
}

TEST_CASE("what a message has once and a tensor often is counted by itself") {
  const auto decode_with = [](const std::string& text, int64_t repeated) {
    tensorflow::TensorProto proto;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &proto));
    int64_t budget = 1'000'000;
    return tensor_from_proto(proto, &budget, &repeated).status();
  };
  const std::string numbers =
      "dtype: DT_FLOAT tensor_shape { dim { size: 101 } } float_val: 1";
  CHECK(decode_with(numbers, 400).ok());
  CHECK(decode_with(numbers, 399).code() == Code::kResourceExhausted);
  // The contents of strings, too.
  const std::string strings =
      "dtype: DT_STRING tensor_shape { dim { size: 101 } } string_val: '" +
      std::string(50, 'x') + "'";
  const int64_t all = 100 * int64_t(sizeof(std::string) + 50);
  CHECK(decode_with(strings, all).ok());
  CHECK(decode_with(strings, all - 1).code() == Code::kResourceExhausted);
}

TEST_CASE("content that is too short for its tensor takes no memory") {
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_STRING);
  proto.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 50);
  proto.set_tensor_content("x");
  int64_t budget = std::numeric_limits<int64_t>::max();
  CHECK(tensor_from_proto(proto, &budget).status().code() == Code::kDataLoss);
  proto.set_dtype(tensorflow::DT_FLOAT);
  CHECK(tensor_from_proto(proto, &budget).status().code() == Code::kDataLoss);
}

TEST_CASE("a tensor of handles cannot be written") {
  tensorflow::TensorProto proto;
  CHECK(tensor_to_proto(Tensor::make(DataType::kResource, {}), &proto)
            .to_string() ==
        "Unimplemented: a tensor of resource cannot be written: its handles "
        "mean nothing outside this process");
}

TEST_CASE("partial shapes survive a round trip") {
  for (const PartialShape& shape :
       {PartialShape(), PartialShape::scalar(), PartialShape({2, -1})}) {
    tensorflow::TensorShapeProto proto;
    shape_to_proto(shape, &proto);
    CHECK(must(shape_from_proto(proto)) == shape);
  }
  tensorflow::TensorShapeProto deep;
  for (int i = 0; i < 255; ++i) deep.add_dim();
  CHECK(shape_from_proto(deep).status().message() ==
        "rank 255 is over the limit of 254");
}

TEST_CASE("a number that no file has as a type is refused") {
  CHECK(must(dtype_from_proto(101)) == make_ref(DataType::kFloat));
  for (int number : {-1, 200, 1 << 20})
    CHECK(dtype_from_proto(number).status().message() ==
          fmt::format("{} is not a number of a data type", number));
}
