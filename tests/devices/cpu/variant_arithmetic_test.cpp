#include "tests/devices/tensor_lists.h"

using namespace tagflow;
using namespace tagflow::devices;

TEST_CASE("lists have zeros and sums, lists of lists too") {
  const auto sum = [](const std::vector<Tensor>& lists) {
    return run_op("AddN", lists, {{"N", int64_t(lists.size())}});
  };
  const auto zeros = [](const Tensor& list) {
    return run_op("ZerosLike", {list});
  };
  const Tensor a = list_of({1, 2});
  expect_close(stack(one_of(sum({a, list_of({3, 4}), a})), kInt),
               int_vector({5, 8}));
  expect_close(stack(one_of(zeros(a)), kInt), int_vector({0, 0}));
  // What is not set counts as nothing.
  const Tensor half = one_of(set_item(reserved(2, kInt), 1, Tensor::scalar(9)));
  expect_close(stack(one_of(sum({half, half})), kInt), int_vector({0, 18}));
  expect_close(stack(one_of(sum({half, a})), kInt), int_vector({1, 11}));
  CHECK_FALSE(list_in(one_of(zeros(half))).elements[0].valid());
  const Tensor nested = one_of(push(empty_list(DataType::kVariant), a));
  const Tensor doubled = one_of(sum({nested, nested}));
  expect_close(stack(one_of(get_item(doubled, 0, DataType::kVariant)), kInt),
               int_vector({2, 4}));
  expect_close(
      stack(one_of(get_item(one_of(zeros(nested)), 0, DataType::kVariant)),
            kInt),
      int_vector({0, 0}));

  expect_error(sum({a, list_of({1})}), kInvalid,
               "cannot add TensorList[2] of int32 and TensorList[1] of int32");
  expect_error(sum({a, one_of(run_op("OptionalNone", {}))}), kInvalid,
               "cannot add TensorList[2] of int32 and Optional of nothing");
  expect_error(sum({reserved(1, kInt, int_vector({1})),
                    reserved(1, kInt, int_vector({2}))}),
               kInvalid, "cannot add lists of elements of shapes [1] and [2]");
  expect_error(sum({one_of(from_tensor(Tensor::of<int32_t>({1, 1}, {1}))),
                    list_of({1})}),
               kInvalid, "cannot add int32[1] and int32[]");
  const Tensor texts = one_of(from_tensor(Tensor::vector<std::string>({"a"})));
  expect_error(sum({texts, texts}), kInvalid,
               "values of type string cannot be added");
  const Tensor empty = Tensor::make(DataType::kVariant, {});
  expect_error(sum({a, empty}), kInvalid,
               "there are no zeros and sums of an empty variant");
  expect_error(zeros(empty), kInvalid,
               "there are no zeros and sums of an empty variant");
}

TEST_CASE("lists nested too deep have no zeros, and are let go of") {
  Tensor nested = empty_list(DataType::kVariant);
  const auto nest = [&nested] {
    auto list =
        make_ref_counted<TensorList>(DataType::kVariant, PartialShape());
    list->elements.push_back(std::move(nested));
    nested = Tensor::make(DataType::kVariant, {});
    *nested.mutable_data<Variant>() = Variant(std::move(list));
  };
  for (int i = 0; i < 1000; ++i) nest();
  CHECK(run_op("ZerosLike", {nested}).ok());
  nest();
  expect_error(run_op("ZerosLike", {nested}), Code::kResourceExhausted,
               "values are nested deeper than 1000 levels");
  expect_error(run_op("AddN", {nested, nested}), Code::kResourceExhausted,
               "values are nested deeper than 1000 levels");
  for (int i = 0; i < 1'000'000; ++i) nest();
  CHECK(nested.unique());
}
