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

  // A single empty variant is a zero of any shape.
  const Tensor none = one_of(run_op("ZeroVariant", {}));
  const Tensor several = one_of(run_op("Pack", {a, half}, {{"N", int64_t(2)}}));
  for (const auto& terms : {std::vector<Tensor>{none, several, none},
                            std::vector<Tensor>{several, none}})
    CHECK(one_of(sum(terms)).describe() == several.describe());
  CHECK(one_of(sum({none, none})).describe() == none.describe());

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
}

TEST_CASE("an empty variant is a zero of whatever it is added to") {
  const Tensor empty = Tensor::make(DataType::kVariant, {2});
  Tensor half = empty.clone();
  half.mutable_data<Variant>()[1] = *list_of({1, 2}).data<Variant>();
  const auto sum = [](const Tensor& a, const Tensor& b) {
    return one_of(run_op("AddN", {a, b}, {{"N", int64_t{2}}}));
  };
  for (const Tensor& total : {sum(empty, half), sum(half, empty)}) {
    CHECK(total.data<Variant>()[0].get() == nullptr);
    CHECK(total.data<Variant>()[1].get() == half.data<Variant>()[1].get());
  }
  const Tensor doubled = sum(half, half);
  CHECK(doubled.data<Variant>()[1]
            .get_if<TensorList>()
            ->elements[1]
            .scalar_value<int32_t>() == 4);
  const Tensor zeros = one_of(run_op("ZerosLike", {half}));
  CHECK(zeros.data<Variant>()[0].get() == nullptr);
  CHECK(zeros.data<Variant>()[1].get_if<TensorList>()->size() == 2);
}

TEST_CASE("a variant without arithmetic has neither zeros nor sums") {
  class Other final : public VariantValue {
    std::string describe() const override { return "something else"; }
  };
  Tensor other = Tensor::make(DataType::kVariant, {});
  *other.mutable_data<Variant>() = Variant(make_ref_counted<Other>());
  const AttrMap two{{"N", int64_t{2}}};
  const char* const text = "there are no zeros and sums of something else";
  expect_error(run_op("AddN", {list_of({1}), other}, two), kInvalid, text);
  expect_error(run_op("AddN", {other, list_of({1})}, two), kInvalid, text);
  expect_error(run_op("ZerosLike", {other}), kInvalid, text);
  expect_error(
      run_op("AddN", {other, Tensor::make(DataType::kVariant, {1})}, two),
      kInvalid, "cannot add variant[] and variant[1]");
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
