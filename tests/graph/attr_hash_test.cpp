#include "graph/attr_hash.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace tagflow;

namespace {

size_t hash_of(const AttrValue& value) {
  AttrHash hash;
  hash.add_value(value);
  return hash.value();
}

}  // namespace

TEST_CASE("equal attributes have one hash, others others") {
  const std::vector<AttrValue> values = {
      "text",
      "texts",
      int64_t(1),
      int64_t(-1),
      0.f,
      -0.f,
      true,
      DataType::kFloat,
      PartialShape({1, 2}),
      PartialShape({2, 1}),
      PartialShape(),
      Tensor::scalar(1),
      Tensor::scalar(2),
      Tensor::scalar("a"),
      Tensor::vector<std::string>({"a", "b"}),
      FunctionRef{"f", {{"n", int64_t(1)}}},
      FunctionRef{"f", {{"n", int64_t(2)}}},
      AttrPlaceholder{"T"},
      std::vector<int64_t>{1, 2},
      std::vector<int64_t>{2, 1},
      std::vector<bool>{true, false},
      std::vector<FunctionRef>{{"f", {}}, {"g", {}}},
  };
  std::set<size_t> hashes;
  for (const AttrValue& value : values) {
    CAPTURE(value.to_string());
    const AttrValue same = value;
    CHECK(hash_of(value) == hash_of(same));
    CHECK(hashes.insert(hash_of(value)).second);
  }
  CHECK(hash_of(EmptyList()) == hash_of(std::vector<float>()));
  CHECK(hash_of(EmptyList()) == hash_of(std::vector<FunctionRef>()));
}

TEST_CASE("an attribute hash covers as many elements as asked for") {
  const auto zeros_and = [](int32_t last) {
    Tensor tensor = Tensor::make(DataType::kInt32, {1000});
    std::fill_n(tensor.mutable_data<int32_t>(), 999, 0);
    tensor.mutable_data<int32_t>()[999] = last;
    return tensor;
  };
  const Tensor a = zeros_and(0), b = zeros_and(1);
  const auto hash = [](const Tensor& tensor, size_t most) {
    AttrHash made;
    made.add_tensor(tensor, most);
    return made.value();
  };
  CHECK(hash(a, AttrHash::kTensorBytes) == hash(b, AttrHash::kTensorBytes));
  CHECK(hash(a, 4000) != hash(b, 4000));
}
