#include "tests/devices/tensor_arrays.h"

using namespace tagflow;
using namespace tagflow::devices;

TEST_CASE("rows are scattered into a tensor array and gathered from it") {
  const auto check = [](const Tensor& rows, const Tensor& swapped) {
    const Array array(3, rows.dtype(), kKeep);
    expect_close(array.scatter(int_row({2, 0}), rows), kFlow);
    expect_close(array.gather(int_row({2, 0})), rows);
    expect_close(array.gather(int_row({0, 2})), swapped);
  };
  check(Tensor::vector<float>({1, 2}), Tensor::vector<float>({2, 1}));
  check(Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}),
        Tensor::of<int64_t>({2, 2}, {3, 4, 1, 2}));
  check(Tensor::of<std::string>({2, 1}, {"a", "b"}),
        Tensor::of<std::string>({2, 1}, {"b", "a"}));
  check(Tensor::vector<std::string>({"a", "b"}),
        Tensor::vector<std::string>({"b", "a"}));
  check(Tensor::of<bool>({2, 1, 1}, {true, false}),
        Tensor::of<bool>({2, 1, 1}, {false, true}));
  check(Tensor::of<Complex128>({2}, {{1, 2}, {3, 4}}),
        Tensor::of<Complex128>({2}, {{3, 4}, {1, 2}}));
  check(Tensor::of<float>({2, 0}, {}), Tensor::of<float>({2, 0}, {}));
  // Nothing, of a known shape.
  const Array array(3, DataType::kFloat);
  expect_close(array.scatter(int_row({}), Tensor::of<float>({0, 2}, {})),
               kFlow);
  expect_close(array.gather(int_row({}), {4}), Tensor::of<float>({0, 4}, {}));
}

TEST_CASE("a tensor array moves many rows with several workers") {
  std::vector<float> values(100'000);
  std::vector<int32_t> indices(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = float(i);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = int32_t(i);
  const Tensor rows = Tensor::of<float>({1000, 100}, values);
  const Tensor all = Tensor::of<int32_t>({1000}, indices);
  const Array array(1000, DataType::kFloat);
  expect_close(array.scatter(all, rows), kFlow);
  expect_close(array.gather(all), rows);
}

TEST_CASE("a tensor is split into a tensor array and joined from it") {
  const Tensor rows = Tensor::of<int32_t>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Array array(3, DataType::kInt32, kKeep);
  expect_close(array.split(rows, {2, 0, 1}), kFlow);
  expect_close(array.read(0), Tensor::of<int32_t>({2, 2}, {1, 2, 3, 4}));
  expect_close(array.read(1), Tensor::of<int32_t>({0, 2}, {}));
  const auto joined = array.concat({2});
  expect_close(joined, rows);
  expect_close((*joined)[1], Tensor::vector<int64_t>({2, 0, 1}));
  const Array strings(2, DataType::kString);
  const Tensor texts = Tensor::vector<std::string>({"a", "b", "c"});
  expect_close(strings.split(texts, {1, 2}), kFlow);
  expect_close(strings.concat(), texts);
  const auto nothing = Array(0, DataType::kFloat).concat({4, 5});
  expect_close(nothing, Tensor::of<float>({0, 4, 5}, {}));
  expect_close((*nothing)[1], Tensor::of<int64_t>({0}, {}));
}

TEST_CASE("rows scattered one by one make an array as long as they are many") {
  const Array array(0, DataType::kInt32, kDynamic);
  constexpr int kRows = 1000;
  for (int i = 0; i < kRows; ++i)
    expect_close(array.scatter(int_row({i}), int_row({i * i})), kFlow);
  CHECK(array.size() == kRows);
  expect_close(array.gather(int_row({999, 0, 500})),
               int_row({999 * 999, 0, 250'000}));
}

TEST_CASE("a tensor array does not join elements of different shapes") {
  const Array array(2, DataType::kInt32, kKeep);
  expect_close(array.write(0, int_row({1, 2})), kFlow);
  expect_close(array.write(1, Tensor::scalar(1)), kFlow);
  expect_error(array.gather(int_row({0, 1})), Code::kInvalidArgument,
               "element 1 is int32[], element 0 is int32[2]");
  expect_error(array.gather(int_row({0}), {3}), Code::kInvalidArgument,
               "element 0 is int32[2], element_shape says [3]");
  // From now on that is agreed.
  expect_error(array.gather(int_row({0}), {2}), Code::kInvalidArgument,
               "elements have the shape [3], not [2]");
  expect_close(array.gather(int_row({})), Tensor::of<int32_t>({0, 3}, {}));
  expect_error(array.concat(), Code::kInvalidArgument,
               "element 1 is a scalar, which cannot be joined");
  expect_error(array.concat({2}), Code::kInvalidArgument,
               "element 0 is int32[2], element_shape_except0 says [2]");
  const Array mixed(2, DataType::kInt32);
  expect_close(mixed.write(0, Tensor::of<int32_t>({1, 2}, {1, 2})), kFlow);
  expect_close(mixed.write(1, Tensor::of<int32_t>({1, 1}, {1})), kFlow);
  expect_error(mixed.concat(), Code::kInvalidArgument,
               "elements differ beyond their first dimension: element 0 is "
               "int32[1,2], element 1 is int32[1,1]");
}
