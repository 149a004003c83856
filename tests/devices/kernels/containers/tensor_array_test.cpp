#include "devices/kernels/containers/tensor_array.h"

#include <atomic>
#include <thread>

#include "graph/dtype_visit.h"
#include "tests/devices/tensor_arrays.h"

using namespace tagflow;
using namespace tagflow::devices;

TEST_CASE("a tensor array gives back what was written, of every type") {
  const auto check = [](const Tensor& value) {
    const Array array(3, value.dtype());
    CHECK(array.size() == 3);
    expect_close(array.write(2, value), kFlow);
    expect_close(array.write(0, value), kFlow);
    expect_close(array.read(2), value);
    expect_close(array.read(0), value);
  };
  for (DataType dtype :
       {DataType::kFloat, DataType::kDouble, DataType::kHalf,
        DataType::kBFloat16, DataType::kInt8, DataType::kInt16,
        DataType::kInt32, DataType::kInt64, DataType::kUInt8, DataType::kUInt16,
        DataType::kUInt32, DataType::kUInt64, DataType::kBool,
        DataType::kComplex64, DataType::kComplex128, DataType::kString}) {
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      check(Tensor::of<T>({}, {T()}));
      check(Tensor::of<T>({2, 2}, {T(), T(), T(), T()}));
      check(Tensor::of<T>({0, 2}, {}));
    });
  }
  check(Tensor::scalar("text"));
  check(Tensor::make(DataType::kVariant, {}));
  const Array inner(1, DataType::kFloat);
  check(inner.handle());
}

TEST_CASE("several workers write to one tensor array at once") {
  const Array array(0, DataType::kInt32,
                    {{"dynamic_size", true}, {"clear_after_read", false}});
  std::atomic<int> failed{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 4; ++worker)
    workers.emplace_back([&, worker] {
      for (int i = worker; i < 400; i += 4) {
        const Tensor value = Tensor::scalar(i);
        if (!array.write(i, value).ok()) ++failed;
        const auto read = array.read(i);
        if (!read.ok() || !identical((*read)[0], value)) ++failed;
      }
    });
  for (std::thread& worker : workers) worker.join();
  CHECK(failed == 0);
  CHECK(array.size() == 400);
  expect_close(array.gather(int_row({0, 399})), int_row({0, 399}));
}

TEST_CASE("a dynamic tensor array grows with what is written") {
  const Array array(0, DataType::kInt32,
                    {{"dynamic_size", true},
                     {"clear_after_read", false},
                     {"element_shape", PartialShape::scalar()}});
  expect_close(array.write(2, Tensor::scalar(5)), kFlow);
  CHECK(array.size() == 3);
  expect_close(array.write(100, Tensor::scalar(6)), kFlow);
  CHECK(array.size() == 101);
  expect_close(array.scatter(int_row({150}), int_row({7})), kFlow);
  CHECK(array.size() == 151);
  expect_close(array.gather(int_row({2, 100, 150, 0})), int_row({5, 6, 7, 0}));
  const Array split(0, DataType::kInt32, {{"dynamic_size", true}});
  expect_close(split.split(int_row({1, 2, 3}), {1, 2}), kFlow);
  CHECK(split.size() == 2);
  expect_close(split.write(2, int_row({4})), kFlow);
  CHECK(split.size() == 3);
  expect_close(split.concat(), int_row({1, 2, 3, 4}));
}

TEST_CASE("an index outside of a tensor array is refused") {
  const Array array(2, DataType::kFloat);
  const Tensor one = Tensor::scalar(1.0f);
  expect_error(array.write(2, one), Code::kInvalidArgument,
               "[TensorArrayWriteV3] tensor array \"a\": cannot write to index "
               "2, the size is 2 and cannot grow");
  expect_error(array.write(-1, one), Code::kInvalidArgument,
               "cannot write to index -1, which is negative");
  expect_error(array.read(2), Code::kInvalidArgument,
               "[TensorArrayReadV3] tensor array \"a\": cannot read index 2, "
               "the size is 2");
  expect_error(array.read(-1), Code::kInvalidArgument,
               "cannot read index -1, the size is 2");
  expect_error(array.gather(int_row({0, 5})), Code::kInvalidArgument,
               "nothing was written to index 0");
  expect_error(array.scatter(int_row({5}), Tensor::vector<float>({1})),
               Code::kInvalidArgument,
               "6 elements are wanted, the size is 2 and cannot grow");
  expect_error(array.scatter(int_row({-5}), Tensor::vector<float>({1})),
               Code::kInvalidArgument, "cannot write to index -5");
  expect_error(array.split(Tensor::vector<float>({1}), {1}),
               Code::kInvalidArgument,
               "1 elements are wanted, the size is 2 and cannot grow");
  const Array growing(2, DataType::kFloat, {{"dynamic_size", true}});
  expect_error(growing.write(-1, one), Code::kInvalidArgument,
               "cannot write to index -1");
  expect_error(growing.write(1 << 30, one), Code::kResourceExhausted,
               "[TensorArrayWriteV3] tensor array \"a\" would have 1073741825 "
               "elements, more than 134217728");
  constexpr int kMost = 1 << 27;
  expect_error(growing.write(kMost, one), Code::kResourceExhausted,
               "would have 134217729 elements, more than 134217728");
  CHECK(growing.size() == 2);
  expect_error(growing.split(Tensor::vector<float>({1}), {1}),
               Code::kInvalidArgument, "1 elements are wanted, the size is 2");
}

TEST_CASE("a tensor array's element is written once") {
  const Array array(2, DataType::kFloat, kKeep);
  const Tensor one = Tensor::scalar(1.0f);
  expect_close(array.write(1, one), kFlow);
  expect_error(array.write(1, one), Code::kInvalidArgument,
               "cannot write to index 1 a second time");
  expect_close(array.read(1), one);
  expect_error(array.write(1, one), Code::kInvalidArgument,
               "cannot write to index 1, it was read already");
  expect_error(array.scatter(int_row({0, 0}), Tensor::vector<float>({1, 2})),
               Code::kInvalidArgument, "cannot write to index 0 a second time");
}

TEST_CASE("a tensor array clears an element when it is read") {
  const Array array(1, DataType::kFloat);
  const Tensor big = Tensor::make(DataType::kFloat, {100});
  expect_close(array.write(0, big), kFlow);
  CHECK_FALSE(big.unique());
  CHECK(array.read(0).ok());
  CHECK(big.unique());
  expect_error(array.read(0), Code::kInvalidArgument,
               "cannot read index 0 a second time, the first read cleared it");
  const Array kept(1, DataType::kFloat, kKeep);
  expect_close(kept.write(0, big), kFlow);
  CHECK(kept.read(0).ok());
  CHECK(kept.read(0).ok());
  CHECK_FALSE(big.unique());
}

TEST_CASE("a tensor array reads zeros for an unset element of known shape") {
  const AttrMap vectors{{"element_shape", PartialShape{2}}};
  expect_close(Array(1, DataType::kInt32, vectors).read(0), int_row({0, 0}));
  expect_close(Array(1, DataType::kBool, vectors).read(0),
               Tensor::vector<bool>({false, false}));
  // The first element says the shape of all.
  const Array same(2, DataType::kInt32, {{"identical_element_shapes", true}});
  expect_close(same.write(1, int_row({1, 2, 3})), kFlow);
  expect_close(same.gather(int_row({0, 1})),
               Tensor::of<int32_t>({2, 3}, {0, 0, 0, 1, 2, 3}));
  expect_error(Array(1, DataType::kInt32).read(0), Code::kInvalidArgument,
               "nothing was written to index 0, and the shape <unknown> does "
               "not say what zeros to read");
  expect_error(
      Array(1, DataType::kInt32, {{"element_shape", PartialShape{-1, 2}}})
          .read(0),
      Code::kInvalidArgument, "and the shape [?,2] does not say");
  expect_error(Array(1, DataType::kString, vectors).read(0),
               Code::kInvalidArgument,
               "nothing was written to index 0, and type string has no zeros");
}

TEST_CASE("a tensor array refuses zeros of a shape too large for a tensor") {
  constexpr int64_t kMany = int64_t{1} << 32;
  const Array huge(1, DataType::kFloat,
                   {{"element_shape", PartialShape{kMany, kMany}}});
  const char* text =
      "[shape] the number of elements of [4294967296,4294967296] overflows";
  expect_error(huge.read(0), Code::kInvalidArgument, text);
  expect_error(huge.gather(int_row({0})), Code::kInvalidArgument, text);
  expect_error(Array(0, DataType::kFloat)
                   .concat(PartialShape(std::vector<int64_t>(254, 1))),
               Code::kInvalidArgument,
               "[shape] rank 255 is over the limit of 254");
}

TEST_CASE("elements fit the shape and type of their array") {
  const Array vectors(2, DataType::kInt32,
                      {{"element_shape", PartialShape{-1}}});
  expect_close(vectors.write(0, int_row({1, 2})), kFlow);
  expect_close(vectors.write(1, int_row({1})), kFlow);
  expect_error(vectors.write(0, Tensor::scalar(1)), Code::kInvalidArgument,
               "cannot write int32[] to index 0, elements have the shape [?]");
  expect_error(vectors.write(0, Tensor::scalar(1.0f)), Code::kInvalidArgument,
               "cannot write float[] to index 0, elements are of type int32");
  const Array same(2, DataType::kInt32, {{"identical_element_shapes", true}});
  expect_close(same.write(0, int_row({1, 2})), kFlow);
  expect_error(same.write(1, int_row({1})), Code::kInvalidArgument,
               "cannot write int32[1] to index 1, elements have the shape [2]");
  const OneStep step;
  const Tensor handle = step.array(2, DataType::kFloat);
  expect_error(step.run("TensorArrayReadV3", {handle, Tensor::scalar(0), kFlow},
                        {{"dtype", DataType::kInt32}}),
               Code::kInvalidArgument,
               "cannot read a int32 from tensor array \"op\" of float with 2 "
               "elements");
  expect_error(step.run("TensorArrayGatherV3", {handle, int_row({0}), kFlow},
                        {{"dtype", DataType::kInt32}}),
               Code::kInvalidArgument, "has no elements of type int32");
  expect_error(step.run("TensorArrayScatterV3",
                        {handle, int_row({0}), int_row({0}), kFlow}),
               Code::kInvalidArgument, "has no elements of type int32");
}

TEST_CASE("a tensor array refuses wrong sizes, handles and flows") {
  const OneStep step;
  const AttrMap floats{{"dtype", DataType::kFloat}};
  expect_error(step.run("TensorArrayV3", {Tensor::scalar(-1)}, floats),
               Code::kInvalidArgument,
               "[TensorArrayV3] the size is negative: -1");
  expect_error(step.run("TensorArrayV3", {int_row({1})}, floats),
               Code::kInvalidArgument,
               "size must be an int32 scalar, not int32[1]");
  expect_error(step.run("TensorArrayV3", {Tensor::scalar(1 << 30)}, floats),
               Code::kResourceExhausted,
               "size 1073741824 is more than 134217728");
  const Array array(2, DataType::kFloat);
  const Tensor two = Tensor::vector<float>({1, 2});
  expect_error(array.gather(Tensor::scalar(1)), Code::kInvalidArgument,
               "indices must be a vector, not int32[]");
  expect_error(array.gather(int_row({})), Code::kUnimplemented,
               "[TensorArrayGatherV3] without elements the shape must be "
               "known, not <unknown>");
  expect_error(array.scatter(int_row({0}), two), Code::kInvalidArgument,
               "1 indices for the rows of float[2]");
  expect_error(array.scatter(int_row({0}), Tensor::scalar(1.0f)),
               Code::kInvalidArgument,
               "the value must have rows, not be float[]");
  expect_error(array.split(Tensor::scalar(1.0f), {1, 1}),
               Code::kInvalidArgument,
               "the value must have rows, not be float[]");
  expect_error(array.split(two, {1, 2}), Code::kInvalidArgument,
               "lengths say more rows than float[2] has");
  expect_error(array.split(two, {1, 0}), Code::kInvalidArgument,
               "lengths say 1 of the rows of float[2]");
  expect_error(array.split(two, {3, -1}), Code::kInvalidArgument,
               "lengths say more rows");
  expect_error(array.split(two, {-1, 3}), Code::kInvalidArgument,
               "length -1 is negative");
  expect_error(
      step.run("TensorArraySplitV3",
               {array.handle(), two, Tensor::scalar(int64_t{2}), kFlow}),
      Code::kInvalidArgument, "lengths must be a vector, not int64[]");
  expect_error(Array(0, DataType::kFloat).concat(), Code::kUnimplemented,
               "without elements element_shape_except0 must be known");
  expect_error(step.run("TensorArraySizeV3",
                        {Tensor::make(DataType::kResource, {}), kFlow}),
               Code::kInvalidArgument,
               "input 0 must be one tensor array, not an empty handle");
  expect_error(run_op("TensorArrayV3", {Tensor::scalar(1)}, floats),
               Code::kInternal, "there is no step to keep the object in");
}

// What was written beyond the split belongs to other gradients.
TEST_CASE("the gradient of a split ends where the split did") {
  const Array array(2, DataType::kFloat, {{"dynamic_size", true}});
  CHECK(array.split(Tensor::vector<float>({1, 2, 3}), {1, 2}).ok());
  CHECK(array.write(2, Tensor::vector<float>({4})).ok());
  const Array gradient = array.gradient();
  CHECK(gradient.split(Tensor::vector<float>({5, 6, 7, 8}), {1, 2, 1}).ok());
  expect_close(gradient.concat(), Tensor::vector<float>({5, 6, 7}));
}

TEST_CASE("a closed tensor array is of no use any more") {
  const Array array(2, DataType::kFloat, {{"dynamic_size", true}});
  const Tensor big = Tensor::make(DataType::kFloat, {100});
  expect_close(array.write(0, big), kFlow);
  CHECK(array.close().ok());
  CHECK(big.unique());
  const char* text = "tensor array \"a\": it has been closed";
  for (const auto& result :
       {array.write(0, big), array.read(0), array.gather(int_row({0})),
        array.scatter(int_row({0}), Tensor::vector<float>({1})), array.concat(),
        array.split(Tensor::vector<float>({1}), {1}), array.make_gradient()})
    expect_error(result, Code::kInvalidArgument, text);
  CHECK(array.close().ok());
}
