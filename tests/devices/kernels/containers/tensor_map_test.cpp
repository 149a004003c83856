#include <doctest/doctest.h>

#include "tests/devices/kernel_fixture.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

constexpr Code kInvalid = Code::kInvalidArgument;

Tensor map_of(std::initializer_list<std::pair<Tensor, Tensor>> entries) {
  Tensor map = (*run_op("EmptyTensorMap", {}))[0];
  for (const auto& [key, value] : entries)
    map = (*run_op("TensorMapInsert", {map, key, value}))[0];
  return map;
}
Result<Outputs> look_up(const Tensor& map, const Tensor& key,
                        DataType dtype = DataType::kFloat) {
  return run_op("TensorMapLookup", {map, key}, {{"value_dtype", dtype}});
}
Result<Outputs> erase(const Tensor& map, const Tensor& key) {
  return run_op("TensorMapErase", {map, key},
                {{"value_dtype", DataType::kFloat}});
}
Tensor word(const char* text) { return Tensor::scalar(text); }

}  // namespace

TEST_CASE("a map is freed even if memory is short") {
  for (int64_t k = 1;; ++k) {
    Tensor inner = map_of({{word("a"), Tensor::scalar(1.0f)}});
    Tensor map = map_of({{word("a"), inner}, {word("b"), inner}});
    inner.reset();
    FailAllocation fail(k);
    map.reset();
    if (!fail.failed()) break;
  }
}

TEST_CASE("a map has the last value of each key, and others have their own") {
  const Tensor one = map_of({{word("a"), Tensor::scalar(1.0f)},
                             {word("b"), Tensor::scalar(2.0f)},
                             {word("a"), Tensor::scalar(3.0f)}});
  expect_close(look_up(one, word("a")), Tensor::scalar(3.0f));
  expect_close(run_op("TensorMapSize", {one}), Tensor::scalar(2));
  const Tensor two = (*erase(one, word("a")))[0];
  expect_close(run_op("TensorMapHasKey", {two, word("a")}),
               Tensor::scalar(false));
  expect_close(run_op("TensorMapHasKey", {one, word("a")}),
               Tensor::scalar(true));
  expect_close(run_op("TensorMapSize", {two}), Tensor::scalar(1));
  expect_close(
      run_op("TensorMapStackKeys", {two}, {{"key_dtype", DataType::kString}}),
      Tensor::vector<std::string>({"b"}));
  // Of one type, shape and elements.
  const Tensor mixed = map_of({{Tensor::scalar(1), Tensor::scalar(1.0f)},
                               {Tensor::vector<int32_t>({1}), word("x")},
                               {Tensor::scalar<int64_t>(1), word("y")}});
  expect_close(run_op("TensorMapSize", {mixed}), Tensor::scalar(3));
  expect_close(look_up(mixed, Tensor::scalar<int64_t>(1), DataType::kString),
               word("y"));
}

TEST_CASE("a map refuses keys and types that it does not have") {
  const Tensor map = map_of({{word("a"), Tensor::scalar(1.0f)}});
  expect_error(look_up(map, word("b")), kInvalid, "the map has no key");
  expect_error(erase(map, word("b")), kInvalid, "the map has no key");
  expect_error(look_up(map, word("a"), DataType::kInt32), kInvalid,
               "is float[], not of int32");
  expect_error(look_up(Tensor::make(DataType::kVariant, {}), word("a")),
               kInvalid, "must be one tensor map, not an empty variant");
  const AttrMap words{{"key_dtype", DataType::kString}};
  expect_error(run_op("TensorMapStackKeys", {map_of({})}, words), kInvalid,
               "no keys that could be stacked");
  expect_error(
      run_op("TensorMapStackKeys",
             {map_of({{word("a"), word("x")},
                      {Tensor::vector<std::string>({"b"}), word("x")}})},
             words),
      kInvalid, "cannot be stacked");
  expect_error(run_op("TensorMapInsert", {map, map, word("x")}), kInvalid,
               "a map cannot have keys of variant");
}

TEST_CASE("maps have zeros and sums") {
  const Tensor a = map_of(
      {{word("a"), Tensor::scalar(1.0f)}, {word("b"), Tensor::scalar(2.0f)}});
  const Tensor b = map_of(
      {{word("b"), Tensor::scalar(5.0f)}, {word("c"), Tensor::scalar(7.0f)}});
  const Tensor sum = (*run_op("AddN", {a, b}))[0];
  expect_close(look_up(sum, word("a")), Tensor::scalar(1.0f));
  expect_close(look_up(sum, word("b")), Tensor::scalar(7.0f));
  expect_close(look_up(sum, word("c")), Tensor::scalar(7.0f));
  expect_close(look_up((*run_op("ZerosLike", {a}))[0], word("b")),
               Tensor::scalar(0.0f));
}
