#include "graph/dtype_visit.h"
#include "tests/devices/tensor_lists.h"

using namespace tagflow;
using namespace tagflow::devices;

TEST_CASE("a list gives back what was pushed last, of every type") {
  const auto check = [](const Tensor& value) {
    const DataType dtype = value.dtype();
    const Tensor last = one_of(run_op("Pack", {value, value}, {{"N", 2}}));
    Tensor list = one_of(push(empty_list(dtype), value));
    list = one_of(push(list, last));
    CHECK(length(list) == 2);
    expect_close(get_item(list, 0, dtype), value);
    const auto popped = pop(list, dtype);
    CHECK(length(one_of(popped)) == 1);
    expect_close((*popped)[1], last);
    expect_close((*pop((*popped)[0], dtype))[1], value);
  };
  for (DataType dtype :
       {DataType::kBool, DataType::kInt8, DataType::kUInt16, DataType::kString,
        DataType::kInt64, DataType::kComplex128}) {
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      check(Tensor::of<T>({}, {T()}));
      check(Tensor::of<T>({2, 2}, {T(), T(), T(), T()}));
    });
  }
  check(Tensor::scalar("text"));
  check(Tensor::make(DataType::kResource, {}));
  check(empty_list(kInt));
}

TEST_CASE("an op on a list leaves the list as it was") {
  const Tensor list = list_of({1, 2, 3});
  const Tensor longer = one_of(push(list, Tensor::scalar(4)));
  const Tensor changed = one_of(set_item(list, 0, Tensor::scalar(9)));
  const Tensor shorter = one_of(resize(list, 1));
  expect_close(stack(list, kInt), int_vector({1, 2, 3}));
  expect_close(stack(longer, kInt), int_vector({1, 2, 3, 4}));
  expect_close(stack(changed, kInt), int_vector({9, 2, 3}));
  expect_close(stack(shorter, kInt), int_vector({1}));
}

TEST_CASE("a list that nobody else holds is changed in place") {
  const auto value_of = [](const Tensor& tensor) {
    return tensor.data<Variant>()->get();
  };
  std::vector<Tensor> inputs = {empty_list(kInt), Tensor::scalar(1)};
  const VariantValue* value = value_of(inputs[0]);
  for (int i = 0; i < 100; ++i) {
    auto outputs = run_unshared("TensorListPushBack", inputs);
    REQUIRE(outputs.ok());
    REQUIRE(value_of((*outputs)[0]) == value);
    inputs.push_back(std::move((*outputs)[0]));
    inputs.push_back(Tensor::scalar(i));
  }
  inputs[1] = Tensor::scalar(50);
  inputs.push_back(Tensor::scalar(-1));
  auto outputs = run_unshared("TensorListSetItem", inputs);
  REQUIRE(outputs.ok());
  CHECK(value_of((*outputs)[0]) == value);
  inputs.push_back(std::move((*outputs)[0]));
  inputs.push_back(Tensor::scalar(51));
  outputs = run_unshared("TensorListResize", inputs);
  REQUIRE(outputs.ok());
  CHECK(value_of((*outputs)[0]) == value);
  expect_close((*pop((*outputs)[0], kInt))[1], Tensor::scalar(-1));
  // A shared list is copied, whoever holds its tensor.
  Tensor twice = Tensor::make(DataType::kVariant, {2});
  std::fill_n(twice.mutable_data<Variant>(), 2, *(*outputs)[0].data<Variant>());
  (*outputs)[0] = Tensor();
  inputs.push_back(std::move(twice));
  inputs.push_back(int_vector({7, 8}));
  outputs = run_unshared("TensorListPushBackBatch", inputs);
  REQUIRE(outputs.ok());
  const auto lists = (*outputs)[0].flat<Variant>();
  CHECK(lists[0].get() != lists[1].get());
  CHECK(lists[0].get()->describe() == "TensorList[52] of int32");
}

TEST_CASE("a list reads zeros for an unset element of known shape") {
  const Tensor known = reserved(2, kInt, int_vector({2}));
  expect_close(get_item(known, 1, kInt), int_vector({0, 0}));
  expect_close((*pop(known, kInt))[1], int_vector({0, 0}));
  expect_close(stack(known, kInt), Tensor::of<int32_t>({2, 2}, {0, 0, 0, 0}));
  // From the input, or from another element.
  const Tensor unknown = reserved(2, kInt);
  expect_close(get_item(unknown, 0, kInt, int_vector({1})), int_vector({0}));
  const Tensor half = one_of(set_item(unknown, 0, int_vector({5, 6})));
  expect_close(get_item(half, 1, kInt), int_vector({0, 0}));
  expect_close(stack(half, kInt), Tensor::of<int32_t>({2, 2}, {5, 6, 0, 0}));
  expect_close(gather(half, int_vector({1, 0, 1}), kInt),
               Tensor::of<int32_t>({3, 2}, {0, 0, 5, 6, 0, 0}));
  expect_close(
      stack(reserved(2, DataType::kString, int_vector({})), DataType::kString),
      Tensor::vector<std::string>({"", ""}));
  expect_error(get_item(unknown, 1, kInt), kInvalid,
               "the element was not set, and the shape <unknown> does not say "
               "what zeros to read");
  expect_error(pop(unknown, kInt, int_vector({-1})), kInvalid,
               "the element was not set, and the shape [?] does not say");
  expect_error(get_item(known, 1, kInt, int_vector({3})), kInvalid,
               "elements have the shape [2], not [3]");
  expect_error(stack(unknown, kInt), kInvalid, "no element was set");
  expect_error(gather(unknown, int_vector({0}), kInt), kInvalid,
               "no element was set");
}

TEST_CASE("a list sets and reads elements by index, within its length") {
  const Tensor list = list_of({1, 2});
  expect_error(set_item(list, 2, Tensor::scalar(3)), kInvalid,
               "[TensorListSetItem] cannot set element 2 of TensorList[2] of "
               "int32");
  expect_error(set_item(list, -1, Tensor::scalar(3), true), kInvalid,
               "cannot set element -1 of TensorList[2] of int32");
  expect_error(get_item(list, 2, kInt), kInvalid,
               "cannot get element 2 of TensorList[2] of int32");
  expect_error(get_item(list, -1, kInt), kInvalid, "cannot get element -1");
  const Tensor longer = one_of(set_item(list, 3, Tensor::scalar(4), true));
  expect_close(stack(longer, kInt), int_vector({1, 2, 0, 4}));
  expect_error(set_item(list, 1 << 30, Tensor::scalar(4), true),
               Code::kResourceExhausted,
               "the list would have 1073741825 elements, more than 134217728");
  expect_error(set_item(list, 0, Tensor::scalar(4.0f)), kInvalid,
               "elements of float are wanted, not of TensorList[2] of int32");
  expect_error(set_item(reserved(1, kInt, int_vector({2})), 0, int_vector({1})),
               kInvalid,
               "int32[1] does not fit a list of elements of shape "
               "[2]");
  expect_error(pop(empty_list(kInt), kInt), kInvalid, "the list is empty");
  expect_error(pop(list, DataType::kFloat), kInvalid,
               "elements of float are wanted");
}

TEST_CASE("a list takes what fits its type, shape and bound") {
  const Tensor full =
      one_of(push(empty_list(kInt, int_vector({}), 1), Tensor::scalar(1)));
  expect_error(push(full, Tensor::scalar(2)), kInvalid,
               "the list is full: its max_num_elements is 1");
  expect_error(push(empty_list(kInt, int_vector({-1, 2})), Tensor::scalar(2)),
               kInvalid,
               "int32[] does not fit a list of elements of shape [?,2]");
  expect_error(push(full, Tensor::scalar(2.0f)), kInvalid,
               "elements of float are wanted, not of TensorList[1] of int32");
  expect_error(push(Tensor::make(DataType::kVariant, {}), Tensor::scalar(1)),
               kInvalid,
               "input 0 must be one tensor list, not an empty variant");
  expect_error(push(Tensor::make(DataType::kVariant, {2}), Tensor::scalar(1)),
               kInvalid,
               "input 0 must be one tensor list, a variant scalar, not "
               "variant[2]");
}

TEST_CASE("zeros of a list whose shape no tensor can have are refused") {
  constexpr int64_t kMany = int64_t{1} << 32;
  const Tensor list =
      reserved(1, kInt, Tensor::vector<int64_t>({kMany, kMany}));
  const char* text =
      "[shape] the number of elements of [4294967296,4294967296] overflows";
  expect_error(get_item(list, 0, kInt), kInvalid, text);
  expect_error(pop(list, kInt), kInvalid, text);
  // By what the op says of the shape, too.
  const Tensor any = reserved(1, kInt);
  const Tensor said = Tensor::vector<int64_t>({kMany, kMany});
  expect_error(run_op("TensorListGetItem", {any, Tensor::scalar(0), said},
                      of_type(kInt)),
               kInvalid, text);
}

TEST_CASE("a list refuses a wrong shape or number of elements") {
  const auto make = [](const Tensor& shape, const Tensor& count) {
    return run_op("TensorListReserve", {shape, count}, of_type(kInt));
  };
  const Tensor one = Tensor::scalar(1);
  expect_error(make(Tensor::scalar(3), one), kInvalid,
               "element_shape must be a vector, or -1 for any shape, not "
               "int32[] 3");
  expect_error(make(Tensor::of<int32_t>({1, 1}, {1}), one), kInvalid,
               "element_shape must be a vector, not int32[1,1]");
  expect_error(make(int_vector({-2}), one), kInvalid, "element_shape: ");
  expect_error(make(Tensor::make(kInt, {300}), one), kInvalid,
               "element_shape has 300 dimensions, more than 254");
  expect_error(make(kAnyShape, Tensor::scalar(-1)), kInvalid,
               "num_elements is negative: -1");
  expect_error(make(kAnyShape, int_vector({1})), kInvalid,
               "num_elements must be an int32 scalar, not int32[1]");
  expect_error(make(kAnyShape, Tensor::scalar(1 << 30)),
               Code::kResourceExhausted,
               "the list would have 1073741824 elements, more than 134217728");
  expect_error(resize(list_of({1}), -1), kInvalid, "the size is negative: -1");
  expect_error(resize(list_of({1}), 1 << 30), Code::kResourceExhausted,
               "the list would have 1073741824 elements");
}

TEST_CASE("a list says its length and the shape of its elements") {
  const auto shape_of = [](const Tensor& list, DataType type) {
    return run_op("TensorListElementShape", {list}, {{"shape_type", type}});
  };
  const Tensor known = empty_list(kInt, int_vector({-1, 2}));
  expect_close(shape_of(known, kInt), int_vector({-1, 2}));
  expect_close(shape_of(known, DataType::kInt64),
               Tensor::vector<int64_t>({-1, 2}));
  expect_close(shape_of(empty_list(kInt), kInt), Tensor::scalar(-1));
  expect_close(shape_of(empty_list(kInt), DataType::kInt64),
               Tensor::scalar(int64_t{-1}));
  const Tensor large =
      empty_list(kInt, Tensor::vector<int64_t>({int64_t{1} << 40}));
  expect_error(shape_of(large, kInt), kInvalid,
               "dimension 1099511627776 does not fit into int32");
  CHECK(length(reserved(7, kInt)) == 7);
}

TEST_CASE("a row is pushed onto each of some lists") {
  Tensor lists = Tensor::make(DataType::kVariant, {2});
  lists.mutable_data<Variant>()[0] = *list_of({1}).data<Variant>();
  lists.mutable_data<Variant>()[1] =
      *empty_list(kInt, kAnyShape, 1).data<Variant>();
  const auto push_batch = [](const Tensor& to, const Tensor& rows) {
    return run_op("TensorListPushBackBatch", {to, rows});
  };
  const Tensor pushed = one_of(push_batch(lists, int_vector({5, 6})));
  CHECK(pushed.data<Variant>()[0].get()->describe() ==
        "TensorList[2] of int32");
  CHECK(lists.data<Variant>()[0].get()->describe() == "TensorList[1] of int32");
  expect_error(push_batch(pushed, int_vector({5, 6})), kInvalid,
               "the list is full: its max_num_elements is 1");
  expect_error(push_batch(lists, int_vector({5})), kInvalid,
               "a vector of lists and as many rows, not variant[2] and "
               "int32[1]");
  expect_error(push_batch(lists, Tensor::vector<float>({1, 2})), kInvalid,
               "input 0 is not a list of float but TensorList[1] of int32");
  expect_error(
      push_batch(Tensor::make(DataType::kVariant, {1}), int_vector({5})),
      kInvalid, "input 0 is not a list of int32 but an empty variant");
}

TEST_CASE("TensorListConcatLists puts one list after the other") {
  const auto join = [](const Tensor& a, const Tensor& b, DataType dtype) {
    return run_op("TensorListConcatLists", {a, b}, of_type(dtype));
  };
  const Tensor a = list_of({1, 2});
  expect_close(stack(one_of(join(a, list_of({3}), kInt)), kInt),
               int_vector({1, 2, 3}));
  expect_close(stack(one_of(join(a, a, kInt)), kInt), int_vector({1, 2, 1, 2}));
  expect_error(join(a, a, DataType::kFloat), kInvalid,
               "lists of float are wanted, not TensorList[2] of int32");
  expect_error(join(a, Tensor::make(DataType::kVariant, {}), kInt), kInvalid,
               "lists of int32 are wanted, not an empty variant");
  expect_error(join(a, Tensor::make(DataType::kVariant, {1}), kInt), kInvalid,
               "inputs of one shape are wanted, not variant[] and variant[1]");
  expect_error(join(a, empty_list(kInt, int_vector({})), kInt), kInvalid,
               "lists have elements of shapes <unknown> and []");
}
