#include "devices/copy.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/devices/kernel_fixture.h"
#include "tests/devices/parts_parallel.h"

namespace tagflow::devices {

namespace {

struct Fixture {
  Fixture() { step.parallel = &parallel; }
  PartsParallel parallel;
  StepInfo step;
  Tag tag;
  KernelContext context{nullptr, {}, {}, &step, &tag};
};

Tensor numbered(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kInt32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    tensor.mutable_data<int32_t>()[i] = int32_t(i);
  return tensor;
}

// What strided_copy should do, element by element.
void copy_slowly(const StridedCopy& copy, size_t loop, int64_t from, int64_t to,
                 const Tensor& source, Tensor& target) {
  if (loop == copy.loops.size()) {
    target.mutable_data<int32_t>()[to] = source.data<int32_t>()[from];
    return;
  }
  const CopyLoop& steps = copy.loops[loop];
  for (int64_t i = 0; i < steps.count; ++i)
    copy_slowly(copy, loop + 1, from + i * steps.from_stride,
                to + i * steps.to_stride, source, target);
}

}  // namespace

TEST_CASE("strides are those of row-major order") {
  const Shape shape{2, 3, 4};
  const auto strides = row_major_strides(shape.dims());
  CHECK(strides == Shape::Dims({12, 4, 1}));
  CHECK(product(shape.dims(), 1, 3) == 12);
  CHECK(product(shape.dims(), 3, 3) == 1);
}

TEST_CASE("any order of dimensions is copied as element by element") {
  Fixture fixture;
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    // Now and then sides longer than a tile or a block of the implementation.
    Shape shape;
    const int rank = 1 + int(random() % 4);
    for (int i = 0; i < rank; ++i)
      shape.add_dim(1 + int64_t(random() % (random() % 8 == 0 ? 70 : 6)));
    if (round == 0) shape = Shape({40000});
    if (round == 1) shape = Shape({130, 90});
    const Tensor source = numbered(shape);
    std::vector<size_t> order(size_t(shape.rank()));
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    if (round == 1) order = {1, 0};
    Shape target_shape;
    for (size_t i : order) target_shape.add_dim(shape.dim(int(i)));
    const auto from = row_major_strides(shape.dims());
    const auto to = row_major_strides(target_shape.dims());
    StridedCopy copy;
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t count = target_shape.dim(int(i));
      const bool reversed = random() % 3 == 0;
      const int64_t stride = from[order[i]];
      if (reversed) copy.from += (count - 1) * stride;
      copy.add(count, reversed ? -stride : stride, to[i]);
    }
    Tensor expected = Tensor::make(DataType::kInt32, target_shape);
    copy_slowly(copy, 0, copy.from, copy.to, source, expected);
    Tensor actual = Tensor::make(DataType::kInt32, target_shape);
    strided_copy(fixture.context, copy, source, actual);
    CHECK(identical(actual, expected));
    // And all the way back.
    copy.reverse();
    Tensor back = Tensor::make(DataType::kInt32, shape);
    strided_copy(fixture.context, copy, expected, back);
    CHECK(identical(back, source));
  }
}

TEST_CASE("a stride of zero repeats an element") {
  Fixture fixture;
  const Tensor source = Tensor::vector<std::string>({"a", "b"});
  Tensor target = Tensor::make(DataType::kString, {2, 3});
  StridedCopy copy;
  copy.add(2, 1, 3);
  copy.add(3, 0, 1);
  strided_copy(fixture.context, copy, source, target);
  CHECK(identical(
      target, Tensor::of<std::string>({2, 3}, {"a", "a", "a", "b", "b", "b"})));
}

TEST_CASE("a strided copy with a loop of no steps writes nothing") {
  Fixture fixture;
  const Tensor source = Tensor::make(DataType::kInt32, {0});
  Tensor target = Tensor::vector<int32_t>({5});
  StridedCopy copy;
  copy.from = 1000000;
  copy.add(1, 1, 1);
  copy.add(0, 1, 1);
  strided_copy(fixture.context, copy, source, target);
  CHECK(target.data<int32_t>()[0] == 5);
}

}  // namespace tagflow::devices
