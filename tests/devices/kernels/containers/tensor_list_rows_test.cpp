#include "tests/devices/tensor_lists.h"

using namespace tagflow;
using namespace tagflow::devices;

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
               "rows of int32[1] are not elements of shape [2]");
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
               "rows of int32[2] are not elements of shape [2]");
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
      kInvalid, "rows of int32[2] are not elements of shape [3]");
  expect_error(into(list, Tensor::vector<float>({1}), int_vector({0})),
               kInvalid, "elements of float are wanted");
}
