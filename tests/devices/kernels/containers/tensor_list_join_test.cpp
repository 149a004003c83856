#include "tests/devices/tensor_lists.h"

using namespace tagflow;
using namespace tagflow::devices;

TEST_CASE("a list joins elements along their first dimension, and is split") {
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
  AttrMap first_of_one = of_type(kInt);
  first_of_one["element_shape"] = PartialShape({1, 2});
  expect_close(run_op("TensorListConcat", {list}, first_of_one), rows);
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

TEST_CASE("a list does not join elements that do not fit each other") {
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
  expect_error(split(rows, {1}), kInvalid,
               "lengths say 1 of the rows of int32[2]");
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
