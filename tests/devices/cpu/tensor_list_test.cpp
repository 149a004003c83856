#include "devices/cpu/tensor_list.h"

#include "graph/dtype_visit.h"
#include "tests/devices/one_step.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

const Tensor kAnyShape = Tensor::scalar(-1);

Tensor int_vector(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

Tensor one_of(const Result<Outputs>& outputs) {
  INFO(outputs.status().to_string());
  REQUIRE(outputs.ok());
  return (*outputs)[0];
}

AttrMap of_type(DataType dtype) { return {{"element_dtype", dtype}}; }

Tensor empty_list(DataType dtype, const Tensor& shape = kAnyShape,
                  int max_size = -1) {
  return one_of(run_op("EmptyTensorList", {shape, Tensor::scalar(max_size)},
                       of_type(dtype)));
}

Tensor reserved(int size, DataType dtype, const Tensor& shape = kAnyShape) {
  return one_of(run_op("TensorListReserve", {shape, Tensor::scalar(size)},
                       of_type(dtype)));
}

Result<Outputs> push(const Tensor& list, const Tensor& element) {
  return run_op("TensorListPushBack", {list, element});
}
Result<Outputs> pop(const Tensor& list, DataType dtype,
                    const Tensor& shape = kAnyShape) {
  return run_op("TensorListPopBack", {list, shape}, of_type(dtype));
}
Result<Outputs> set_item(const Tensor& list, int index, const Tensor& element,
                         bool resize = false) {
  return run_op("TensorListSetItem", {list, Tensor::scalar(index), element},
                {{"resize_if_index_out_of_bounds", resize}});
}
Result<Outputs> get_item(const Tensor& list, int index, DataType dtype,
                         const Tensor& shape = kAnyShape) {
  return run_op("TensorListGetItem", {list, Tensor::scalar(index), shape},
                of_type(dtype));
}
Result<Outputs> stack(const Tensor& list, DataType dtype,
                      const Tensor& shape = kAnyShape, int count = -1) {
  return run_op("TensorListStack", {list, shape},
                {{"element_dtype", dtype}, {"num_elements", int64_t(count)}});
}
Result<Outputs> gather(const Tensor& list, const Tensor& indices,
                       DataType dtype, const Tensor& shape = kAnyShape) {
  return run_op("TensorListGather", {list, indices, shape}, of_type(dtype));
}
Result<Outputs> from_tensor(const Tensor& tensor,
                            const Tensor& shape = kAnyShape) {
  return run_op("TensorListFromTensor", {tensor, shape});
}
Result<Outputs> resize(const Tensor& list, int size) {
  return run_op("TensorListResize", {list, Tensor::scalar(size)});
}
Result<Outputs> scatter(const Tensor& tensor, const Tensor& indices, int count,
                        const Tensor& shape = kAnyShape) {
  return run_op("TensorListScatterV2",
                {tensor, indices, shape, Tensor::scalar(count)});
}
Result<Outputs> concat(const Tensor& list, DataType dtype,
                       const Tensor& shape = kAnyShape,
                       std::initializer_list<int64_t> leading = {}) {
  return run_op("TensorListConcatV2",
                {list, shape, Tensor::vector<int64_t>(leading)},
                of_type(dtype));
}
Result<Outputs> split(const Tensor& tensor, std::initializer_list<int64_t> n,
                      const Tensor& shape = kAnyShape) {
  return run_op("TensorListSplit", {tensor, shape, Tensor::vector<int64_t>(n)});
}

int length(const Tensor& list) {
  return one_of(run_op("TensorListLength", {list})).scalar_value<int32_t>();
}

const TensorList& list_in(const Tensor& tensor) {
  return *tensor.data<Variant>()->get_if<TensorList>();
}

// A list of int32 scalars.
Tensor list_of(std::initializer_list<int32_t> values) {
  return one_of(from_tensor(int_vector(values)));
}

constexpr DataType kInt = DataType::kInt32;
constexpr Code kInvalid = Code::kInvalidArgument;

}  // namespace

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

TEST_CASE("lists are stacked into a tensor and made of its rows") {
  const auto check = [](const Tensor& rows) {
    const DataType dtype = rows.dtype();
    const Tensor list = one_of(from_tensor(rows));
    CHECK(length(list) == rows.dim(0));
    expect_close(stack(list, dtype), rows);
  };
  check(int_vector({1, 2, 3}));
  check(Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  check(Tensor::of<std::string>({2, 1}, {"a", "b"}));
  check(Tensor::of<Complex64>({1}, {{1, 2}}));
  check(Tensor::of<bool>({2, 0}, {}));
  const Tensor empty = Tensor::of<bool>({2, 0, 3, 4}, {});
  check(empty);
  const Tensor rows = one_of(from_tensor(empty));
  CHECK(list_in(rows).elements[0].buffer() ==
        list_in(rows).elements[1].buffer());
  expect_close(stack(empty_list(kInt), kInt, int_vector({2})),
               Tensor::of<int32_t>({0, 2}, {}));
  expect_error(stack(empty_list(kInt), kInt), kInvalid,
               "[TensorListStack] no element was set, and the shape <unknown> "
               "does not say what zeros to read");
  expect_error(stack(list_of({1}), kInt, kAnyShape, 2), kInvalid,
               "2 elements are wanted, not TensorList[1] of int32");
  expect_error(stack(list_of({1}), DataType::kFloat), kInvalid,
               "elements of float are wanted, not of TensorList[1] of int32");
  expect_error(stack(list_of({1}), kInt, int_vector({2})), kInvalid,
               "element 0 is int32[], others have the shape [2]");
  const Tensor mixed = one_of(push(
      one_of(push(empty_list(kInt), int_vector({1}))), int_vector({1, 2})));
  expect_error(stack(mixed, kInt), kInvalid,
               "element 1 is int32[2], others have the shape [1]");
  expect_error(from_tensor(Tensor::scalar(1)), kInvalid,
               "the tensor must have rows, not be int32[]");
  expect_error(from_tensor(int_vector({1}), int_vector({2})), kInvalid,
               "rows of int32[1] are no elements of shape [2]");
}

TEST_CASE("what was not set reads as zeros where its shape is known") {
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

TEST_CASE("elements are set and read by index, within the list") {
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
               kInvalid, "input 0 is no tensor list but an empty variant");
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

TEST_CASE("what a list cannot be made of is refused") {
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
               "input 0 is no list of float but TensorList[1] of int32");
  expect_error(
      push_batch(Tensor::make(DataType::kVariant, {1}), int_vector({5})),
      kInvalid, "input 0 is no list of int32 but an empty variant");
}

TEST_CASE("rows are gathered from a list and scattered into one") {
  const Tensor list = list_of({1, 2, 3});
  expect_close(gather(list, int_vector({2, 0, 2}), kInt),
               int_vector({3, 1, 3}));
  expect_close(gather(list, int_vector({}), kInt, int_vector({4})),
               Tensor::of<int32_t>({0, 4}, {}));
  expect_error(gather(list, int_vector({3}), kInt), kInvalid,
               "cannot gather element 3 of TensorList[3] of int32");
  expect_error(gather(list, int_vector({-1}), kInt), kInvalid,
               "cannot gather element -1 of TensorList[3] of int32");
  expect_error(gather(list, int_vector({}), kInt), kInvalid,
               "no element was set");

  const Tensor rows = int_vector({5, 6});
  expect_close(stack(one_of(scatter(rows, int_vector({3, 1}), -1)), kInt),
               int_vector({0, 6, 0, 5}));
  expect_close(stack(one_of(scatter(rows, int_vector({0, 1}), 3)), kInt),
               int_vector({5, 6, 0}));
  expect_close(stack(one_of(run_op("TensorListScatter",
                                   {rows, int_vector({1, 0}), kAnyShape})),
                     kInt),
               int_vector({6, 5}));
  expect_error(scatter(rows, int_vector({0, 3}), 3), kInvalid,
               "index 3 is outside of a list of 3 elements");
  expect_error(scatter(rows, int_vector({0, -1}), 3), kInvalid,
               "index -1 is negative");
  expect_error(scatter(rows, int_vector({0, 1}), -2), kInvalid,
               "num_elements is less than -1: -2");
  expect_error(scatter(rows, int_vector({0}), 3), kInvalid,
               "1 indices for the rows of int32[2]");
  expect_error(scatter(rows, int_vector({0, 1}), 3, int_vector({2})), kInvalid,
               "rows of int32[2] are no elements of shape [2]");
  expect_error(scatter(rows, int_vector({0, 1 << 30}), -1),
               Code::kResourceExhausted, "the list would have 1073741825");

  const auto into = [](const Tensor& to, const Tensor& tensor,
                       const Tensor& indices) {
    return run_op("TensorListScatterIntoExistingList", {to, tensor, indices});
  };
  expect_close(stack(one_of(into(list, rows, int_vector({0, 4}))), kInt),
               int_vector({5, 2, 3, 0, 6}));
  expect_error(into(list, rows, int_vector({0})), kInvalid,
               "a vector of indices, one for each row of int32[2], not "
               "int32[1]");
  expect_error(into(list, rows, int_vector({0, -1})), kInvalid,
               "index -1 is negative");
  expect_error(
      into(reserved(2, kInt, int_vector({3})), rows, int_vector({0, 1})),
      kInvalid, "rows of int32[2] are no elements of shape [3]");
  expect_error(into(list, Tensor::vector<float>({1}), int_vector({0})),
               kInvalid, "elements of float are wanted");
}

TEST_CASE("elements are joined along their first dimension, and split") {
  const Tensor rows = Tensor::of<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor list = one_of(split(rows, {1, 0, 2}));
  CHECK(length(list) == 3);
  expect_close(get_item(list, 2, kInt),
               Tensor::of<int32_t>({2, 2}, {3, 4, 5, 6}));
  const auto joined = concat(list, kInt, int_vector({-1, 2}));
  expect_close(joined, rows);
  expect_close((*joined)[1], Tensor::vector<int64_t>({1, 0, 2}));
  const auto old = run_op("TensorListConcat", {list}, of_type(kInt));
  expect_close(old, rows);
  const Tensor texts = Tensor::vector<std::string>({"a", "b"});
  expect_close(concat(one_of(split(texts, {1, 1})), DataType::kString), texts);

  // What was not set is as long as it is said, or as the others are.
  const Tensor gaps = one_of(set_item(reserved(2, kInt), 1, int_vector({7})));
  const auto filled = concat(gaps, kInt, kAnyShape, {2});
  expect_close(filled, int_vector({0, 0, 7}));
  expect_close((*filled)[1], Tensor::vector<int64_t>({2, 1}));
  expect_close(concat(gaps, kInt), int_vector({0, 7}));
  expect_close(concat(reserved(2, kInt, int_vector({2})), kInt),
               int_vector({0, 0, 0, 0}));
  expect_close(concat(empty_list(kInt), kInt, int_vector({-1, 2})),
               Tensor::of<int32_t>({0, 2}, {}));
}

TEST_CASE("elements that do not fit each other are not joined") {
  const auto list_with = [](std::vector<Tensor> elements) {
    Tensor list = empty_list(kInt);
    for (const Tensor& element : elements) list = one_of(push(list, element));
    return list;
  };
  expect_error(concat(list_with({int_vector({1}), Tensor::scalar(1)}), kInt),
               kInvalid, "element 1 is a scalar, which cannot be joined");
  expect_error(
      concat(list_with({int_vector({1}), Tensor::of<int32_t>({1, 1}, {1})}),
             kInt),
      kInvalid,
      "element 1 is int32[1,1], beyond the first dimension [] is wanted");
  expect_error(concat(list_with({int_vector({1})}), kInt, int_vector({2})),
               kInvalid,
               "element 0 is int32[1], a first dimension of 2 is "
               "wanted");
  expect_error(concat(empty_list(kInt), kInt, int_vector({})), kInvalid,
               "scalar elements cannot be joined");
  expect_error(concat(empty_list(kInt), kInt, int_vector({2, -1})), kInvalid,
               "all dimensions of elements but the first must be known, not "
               "[?]");
  expect_error(concat(reserved(2, kInt), kInt, int_vector({-1}), {1}), kInvalid,
               "element 1 was not set, and there are 1 leading_dims to say its "
               "length");
  expect_error(concat(reserved(1, kInt), kInt, int_vector({-1}), {-1}),
               kInvalid, "leading_dims[0] is negative: -1");
  const int64_t most = std::numeric_limits<int64_t>::max();
  expect_error(concat(reserved(2, kInt), kInt, int_vector({-1}), {most, most}),
               kInvalid, "the sum of the lengths overflows");
  expect_error(concat(reserved(1, kInt), kInt, int_vector({-1, 4}), {most}),
               kInvalid, "");

  const Tensor rows = int_vector({1, 2});
  expect_error(split(rows, {1, 2}), kInvalid,
               "2 rows from row 1 on are beyond the end of int32[2]");
  expect_error(split(rows, {1, most}), kInvalid,
               "9223372036854775807 rows from row 1 on are beyond the end of "
               "int32[2]");
  expect_error(split(rows, {-1}), kInvalid, "length -1 is negative");
  expect_error(split(rows, {1}), kInvalid, "lengths leave 1 rows of int32[2]");
  expect_error(split(Tensor::scalar(1), {1}), kInvalid,
               "the tensor must have rows, not be int32[]");
  expect_error(split(rows, {2}, int_vector({})), kInvalid,
               "rows cannot be split into scalar elements");
  expect_error(split(rows, {2}, int_vector({3})), kInvalid,
               "part 0 is int32[2], elements have the shape [3]");
  expect_error(
      run_op("TensorListSplit", {rows, kAnyShape, Tensor::scalar(int64_t{2})}),
      kInvalid, "lengths must be a vector, not int64[]");
}

TEST_CASE("lists are put one after the other") {
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
