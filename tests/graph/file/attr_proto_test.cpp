#include "graph/file/attr_proto.h"

#include <doctest/doctest.h>

#include "graph/proto/attr.pb.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Result<AttrValue> decode(const tensorflow::AttrValue& proto,
                         const Limits& limits = {}) {
  LimitsLeft left(limits);
  return attr_from_proto(proto, left);
}

}  // namespace

TEST_CASE("every kind of attribute survives a round trip") {
  const std::vector<AttrValue> values = {
      AttrValue(),
      AttrValue(std::string("bytes \0 and \xff", 12)),
      AttrValue(-7),
      AttrValue(1.5),
      AttrValue(false),
      AttrValue(make_ref(DataType::kHalf)),
      AttrValue(PartialShape({2, -1})),
      AttrValue(PartialShape()),
      AttrValue(Tensor::vector<int32_t>({1, 2})),
      AttrValue(FunctionRef{"f", {{"T", DataType::kInt8}, {"n", 2}}}),
      AttrValue(AttrPlaceholder{"T"}),
      AttrValue(EmptyList()),
      AttrValue(std::vector<std::string>{"a", ""}),
      AttrValue(std::vector<int64_t>{1, -2}),
      AttrValue(std::vector<float>{0.5F, -1}),
      AttrValue(std::vector<bool>{true, false}),
      AttrValue(std::vector<DataType>{DataType::kInt8, DataType::kString}),
      AttrValue(std::vector<PartialShape>{PartialShape(), {3}}),
      AttrValue(std::vector<Tensor>{Tensor::scalar("x")}),
      AttrValue(std::vector<FunctionRef>{{"g", {}}, {"h", {{"x", true}}}})};
  for (const AttrValue& value : values) {
    CAPTURE(value.to_string());
    tensorflow::AttrValue proto;
    must(attr_to_proto(value, &proto));
    const AttrValue read = must(decode(proto));
    CHECK(read == value);
    CHECK(read.type_name() == value.type_name());
  }
}

TEST_CASE("an empty list loses its type, and is equal all the same") {
  tensorflow::AttrValue proto;
  must(attr_to_proto(AttrValue(std::vector<int64_t>()), &proto));
  CHECK(must(decode(proto)) == AttrValue(std::vector<int64_t>()));
}

TEST_CASE("a list of several kinds is refused") {
  tensorflow::AttrValue proto;
  proto.mutable_list()->add_i(1);
  proto.mutable_list()->add_s("x");
  CHECK(message_of(decode(proto).status(), Code::kInvalidArgument) ==
        "a list has elements of 2 kinds");
}

TEST_CASE("functions nest in attributes up to the limit") {
  FunctionRef function{"f0", {}};
  for (int i = 1; i < 5; ++i) {
    FunctionRef outer{"f" + std::to_string(i), {}};
    outer.attrs.emplace("inner", std::move(function));
    function = std::move(outer);
  }
  tensorflow::AttrValue proto;
  must(attr_to_proto(AttrValue(function), &proto));
  Limits limits;
  limits.max_attr_depth = 5;
  CHECK(decode(proto, limits).ok());
  limits.max_attr_depth = 4;
  CHECK(message_of(decode(proto, limits).status(), Code::kResourceExhausted) ==
        "function \"f4\": attribute \"inner\": function \"f3\": attribute "
        "\"inner\": function \"f2\": attribute \"inner\": function \"f1\": "
        "attribute \"inner\": functions nest deeper than 4 in an attribute");
}

TEST_CASE("bad values of attributes are refused") {
  tensorflow::AttrValue proto;
  proto.set_type(tensorflow::DataType(777));
  CHECK(message_of(decode(proto).status(), Code::kInvalidArgument) ==
        "777 is not a number of a data type");
  proto.mutable_shape()->add_dim()->set_size(-3);
  CHECK(message_of(decode(proto).status(), Code::kInvalidArgument) ==
        "[shape] negative dimension -3 in [-3]");
  proto.mutable_list()->add_type(tensorflow::DataType(-5));
  CHECK(message_of(decode(proto).status(), Code::kInvalidArgument) ==
        "-5 is not a number of a data type");
}

TEST_CASE("an attribute's long name is refused") {
  google::protobuf::Map<std::string, tensorflow::AttrValue> map;
  map[std::string(50, 'x')].set_i(1);
  Limits limits;
  limits.max_name_length = 49;
  LimitsLeft left(limits);
  CHECK(message_of(attrs_from_proto(map, left).status(),
                   Code::kResourceExhausted) ==
        "an attribute's name has 50 bytes, the limit is 49");
}
