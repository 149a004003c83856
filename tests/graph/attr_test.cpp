#include "graph/attr.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace tagflow;

namespace {

// One value of every alternative.
std::vector<AttrValue> one_of_each() {
  return {AttrValue(),
          AttrValue("text"),
          AttrValue(7),
          AttrValue(1.5),
          AttrValue(true),
          AttrValue(DataType::kHalf),
          AttrValue(PartialShape({2, -1})),
          AttrValue(Tensor::scalar(3)),
          AttrValue(FunctionRef{"f", {{"T", DataType::kFloat}}}),
          AttrValue(AttrPlaceholder{"T"}),
          AttrValue(EmptyList()),
          AttrValue(std::vector<std::string>{"a", "b"}),
          AttrValue(std::vector<int64_t>{1, 2}),
          AttrValue(std::vector<float>{0.5F}),
          AttrValue(std::vector<bool>{true, false}),
          AttrValue(std::vector<DataType>{DataType::kInt8}),
          AttrValue(std::vector<PartialShape>{PartialShape()}),
          AttrValue(std::vector<Tensor>{Tensor::scalar(1)}),
          AttrValue(std::vector<FunctionRef>{{"g", {}}})};
}

}  // namespace

TEST_CASE("every kind of attribute has OpDef's name and a text") {
  const std::vector<std::pair<const char*, const char*>> wanted = {
      {"nothing", "<none>"},
      {"string", "\"text\""},
      {"int", "7"},
      {"float", "1.5"},
      {"bool", "true"},
      {"type", "half"},
      {"shape", "[2,?]"},
      {"tensor", "int32[] 3"},
      {"func", "f"},
      {"placeholder", "$T"},
      {"list(nothing)", "[]"},
      {"list(string)", "[\"a\",\"b\"]"},
      {"list(int)", "[1,2]"},
      {"list(float)", "[0.5]"},
      {"list(bool)", "[true,false]"},
      {"list(type)", "[int8]"},
      {"list(shape)", "[<unknown>]"},
      {"list(tensor)", "[int32[] 1]"},
      {"list(func)", "[g]"}};
  const auto values = one_of_each();
  REQUIRE(values.size() == wanted.size());
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(values[i].type_name() == wanted[i].first);
    CHECK(values[i].to_string() == wanted[i].second);
  }
}

TEST_CASE("an attribute equals itself and no other kind") {
  const auto values = one_of_each();
  const auto again = one_of_each();
  for (size_t i = 0; i < values.size(); ++i)
    for (size_t k = 0; k < values.size(); ++k)
      CHECK((values[i] == again[k]) == (i == k));
}

TEST_CASE("tensors in attributes are compared by content") {
  CHECK(AttrValue(Tensor::scalar("a")) == AttrValue(Tensor::scalar("a")));
  CHECK_FALSE(AttrValue(Tensor::scalar(1)) == AttrValue(Tensor::scalar(2)));
}

TEST_CASE("floats in attributes are compared by their bits") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(AttrValue(nan) == AttrValue(nan));
  CHECK_FALSE(AttrValue(0.0F) == AttrValue(-0.0F));
  CHECK(AttrValue(std::vector<float>{nan}) ==
        AttrValue(std::vector<float>{nan}));
}

TEST_CASE("functions in attributes are compared with their attributes") {
  const FunctionRef f{"f", {{"n", 1}}};
  CHECK(AttrValue(f) == AttrValue(FunctionRef{"f", {{"n", 1}}}));
  CHECK_FALSE(AttrValue(f) == AttrValue(FunctionRef{"f", {{"n", 2}}}));
  CHECK_FALSE(AttrValue(f) == AttrValue(FunctionRef{"g", {{"n", 1}}}));
}

TEST_CASE("an untyped empty list equals an empty list of every type") {
  const AttrValue untyped{EmptyList()};
  CHECK(untyped == AttrValue(std::vector<int64_t>()));
  CHECK(AttrValue(std::vector<Tensor>()) == untyped);
  CHECK_FALSE(untyped == AttrValue(std::vector<int64_t>{1}));
  CHECK_FALSE(untyped == AttrValue(""));
}

TEST_CASE("long attributes are shortened in messages") {
  CHECK(AttrValue(std::vector<int64_t>(100, 1)).to_string() ==
        "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,... 100 in all]");
  const std::string text = AttrValue(std::string(1000, 'x')).to_string();
  CHECK(text.size() < 120);
  CHECK(text.ends_with("(1000 bytes)"));
}

TEST_CASE("an attribute is got by name and type") {
  const AttrMap attrs = {
      {"N", 3}, {"T", DataType::kFloat}, {"list", EmptyList()}};
  CHECK(*get_attr<int64_t>(attrs, "N") == 3);
  CHECK(*get_attr<DataType>(attrs, "T") == DataType::kFloat);
  CHECK(get_attr<std::vector<int64_t>>(attrs, "list")->empty());
  CHECK(get_attr<int64_t>(attrs, "M").status().to_string() ==
        "NotFound: no attribute \"M\"");
  CHECK(get_attr<float>(attrs, "N").status().to_string() ==
        "InvalidArgument: attribute \"N\" is of type int");
  CHECK(get_attr<std::string>(attrs, "list").status().message() ==
        "attribute \"list\" is of type list(nothing)");
}

TEST_CASE("attributes are sorted by name, and the first of a name counts") {
  AttrMap attrs{{"b", 1}, {"a", 2}, {"b", 3}};
  CHECK_FALSE(attrs.emplace("a", 4));
  CHECK(attrs.emplace("aa", 5));
  std::string text;
  for (const auto& [name, value] : attrs)
    text += name + "=" + value.to_string() + " ";
  CHECK(text == "a=2 aa=5 b=1 ");
}

TEST_CASE("attributes are found by name, few or many") {
  AttrMap attrs;
  for (int i = 30; i > 0; --i) {
    const std::string name = "x" + std::to_string(i);
    CHECK(attrs.find(name) == attrs.end());
    attrs[name] = i;
    CHECK(attrs.at(name) == AttrValue(i));
  }
  CHECK(attrs.size() == 30);
  CHECK(attrs.at("x1") == AttrValue(1));
  CHECK_FALSE(attrs.contains("x"));
  CHECK_FALSE(attrs.contains("x31"));
}

TEST_CASE("a change of attributes does not reach their copies") {
  AttrMap attrs{{"a", 1}};
  const AttrMap copy = attrs;
  CHECK(copy.begin() == attrs.begin());
  attrs.insert_or_assign("a", 2);
  attrs["b"] = 3;
  CHECK(copy == AttrMap{{"a", 1}});
  CHECK(attrs == AttrMap{{"a", 2}, {"b", 3}});
  CHECK_FALSE(copy == attrs);
  CHECK(AttrMap() == AttrMap(std::vector<AttrMap::value_type>()));
}
