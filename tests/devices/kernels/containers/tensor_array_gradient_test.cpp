#include "graph/dtype_visit.h"
#include "tests/devices/tensor_arrays.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

// The handle of a gradient of a gradient of ... of an array, `depth` times.
Tensor deep_gradient(OneStep& step, const Tensor& array, size_t depth) {
  graph::Graph graph;
  std::vector<graph::Endpoint> endpoints;
  for (const DataType dtype : {DataType::kResource, DataType::kFloat}) {
    const auto input = graph.add(graph.unique_name("input"), "Placeholder", {},
                                 {{"dtype", dtype}});
    REQUIRE(input.ok());
    endpoints.push_back({*input, 0});
  }
  const auto node =
      graph.add("op", "TensorArrayGradV3", endpoints, {{"source", "g"}});
  REQUIRE(node.ok());
  const auto kernel = KernelRegistry::global().make(**node, "CPU");
  REQUIRE(kernel.ok());
  StepInfo info;
  info.resources = &step.resources;
  const Tag tag;
  std::vector<Tensor> inputs = {array, kFlow}, outputs(2);
  for (size_t i = 0; i < depth; ++i) {
    KernelContext context(*node, inputs, outputs, &info, &tag);
    REQUIRE((*kernel)->compute(context).ok());
    inputs[0] = outputs[0];
  }
  return outputs[0];
}

}  // namespace

TEST_CASE("a gradient array adds up what is written to an index") {
  const Array array(3, DataType::kInt32, kKeep);
  expect_close(array.write(0, int_row({1, 2})), kFlow);
  expect_close(array.write(1, int_row({1, 2})), kFlow);
  const Array gradient = array.gradient();
  CHECK(gradient.size() == 3);
  const Tensor ones = int_row({1, 1});
  expect_close(gradient.write(0, ones), kFlow);
  expect_close(gradient.write(0, int_row({5, 6})), kFlow);
  expect_close(gradient.write(0, int_row({10, 20})), kFlow);
  expect_close(ones, int_row({1, 1}));
  expect_close(gradient.read(0), int_row({16, 27}));
  // Written before, without a gradient yet: zeros.
  expect_close(gradient.read(1), int_row({0, 0}));
  expect_error(gradient.read(2), Code::kInvalidArgument,
               "tensor array \"a@g\": nothing was written to index 2");
  expect_error(gradient.write(0, ones), Code::kInvalidArgument,
               "cannot write to index 0, it was read already");
}

TEST_CASE("sums in a gradient array are of every numeric type") {
  for (DataType dtype :
       {DataType::kFloat, DataType::kDouble, DataType::kHalf,
        DataType::kBFloat16, DataType::kInt8, DataType::kInt16,
        DataType::kInt32, DataType::kInt64, DataType::kUInt8, DataType::kUInt16,
        DataType::kUInt32, DataType::kUInt64, DataType::kComplex64,
        DataType::kComplex128}) {
    const Array array(1, dtype);
    visit_numeric(dtype, [&]<class T>(TypeTag<T>) {
      const Array gradient = array.gradient();
      for (int i = 0; i < 3; ++i)
        expect_close(gradient.write(0, Tensor::of<T>({2}, {T(1), T(2)})),
                     kFlow);
      expect_close(gradient.read(0), Tensor::of<T>({2}, {T(3), T(6)}));
    });
  }
  // Integers wrap around.
  const Array gradient = Array(1, DataType::kInt32).gradient();
  const Tensor most = Tensor::scalar(std::numeric_limits<int32_t>::max());
  expect_close(gradient.write(0, most), kFlow);
  expect_close(gradient.write(0, Tensor::scalar(1)), kFlow);
  expect_close(gradient.read(0),
               Tensor::scalar(std::numeric_limits<int32_t>::min()));
  const Array strings = Array(1, DataType::kString).gradient();
  expect_close(strings.write(0, Tensor::scalar("a")), kFlow);
  expect_error(strings.write(0, Tensor::scalar("b")), Code::kInvalidArgument,
               "values of type string cannot be added");
}

TEST_CASE("a gradient array mirrors the shapes of its array") {
  const Array array(3, DataType::kFloat);
  expect_close(array.write(0, Tensor::vector<float>({1, 2})), kFlow);
  expect_close(array.write(1, Tensor::scalar(1.0f)), kFlow);
  CHECK(array.read(0).ok());  // cleared, its shape is remembered
  const Array gradient = array.gradient();
  expect_error(gradient.write(0, Tensor::scalar(1.0f)), Code::kInvalidArgument,
               "cannot add float[] to index 0, which has the shape [2]");
  expect_close(gradient.read(0), Tensor::vector<float>({0, 0}));
  expect_close(gradient.read(1), Tensor::scalar(0.0f));
  // Each element as three of it, one below the other.
  const Array wide = array.gradient("wide", int_row({3}));
  expect_close(wide.read(0), Tensor::of<float>({3, 2}, {0, 0, 0, 0, 0, 0}));
  expect_close(wide.write(1, Tensor::vector<float>({1, 2, 3})), kFlow);
  expect_error(wide.write(1, Tensor::scalar(1.0f)), Code::kInvalidArgument,
               "which has the shape [3]");
}

TEST_CASE("a gradient array mirrors shapes of every rank") {
  Shape shape;
  for (int rank = 0; rank < 6; ++rank) {
    const std::vector<float> values(size_t(shape.num_elements()), 7.0f);
    const Tensor value = Tensor::of<float>(shape, std::span(values));
    const Array array(2, DataType::kFloat);
    for (int index : {0, 1}) expect_close(array.write(index, value), kFlow);
    CHECK(array.read(0).ok());  // cleared
    const Array gradient = array.gradient();
    const Array second = gradient.gradient();
    const std::vector<float> nothing(values.size(), 0.0f);
    const Tensor zeros = Tensor::of<float>(shape, std::span(nothing));
    for (int index : {0, 1}) {
      expect_close(second.read(index), zeros);
      expect_close(gradient.read(index), zeros);
      expect_error(gradient.read(index), Code::kInvalidArgument,
                   "a second time");
    }
    shape.add_dim(rank % 3 + 1);
  }
}

TEST_CASE("the gradient of an array that was split was split too") {
  const Array array(0, DataType::kInt32, kDynamic);
  expect_close(array.split(int_row({1, 2, 3}), {1, 2}), kFlow);
  expect_close(array.write(2, int_row({9})), kFlow);
  const Array gradient = array.gradient();
  CHECK(gradient.size() == 3);
  const auto joined = gradient.concat();
  expect_close(joined, int_row({0, 0, 0}));
  expect_close((*joined)[1], Tensor::vector<int64_t>({1, 2}));
}

TEST_CASE("a gradient array is the same for the same source") {
  const Array array(2, DataType::kFloat);
  CHECK(identical(array.gradient().handle(), array.gradient().handle()));
  CHECK_FALSE(
      identical(array.gradient().handle(), array.gradient("h").handle()));
  CHECK(array.alive() == 3);
}

TEST_CASE("an array with a gradient does not grow any more") {
  const Array array(1, DataType::kFloat, {{"dynamic_size", true}});
  expect_close(array.write(1, Tensor::scalar(1.0f)), kFlow);
  CHECK(array.gradient().size() == 2);
  expect_error(array.write(2, Tensor::scalar(1.0f)), Code::kInvalidArgument,
               "cannot write to index 2, the size is 2 and cannot grow");
}

TEST_CASE("a gradient array that has summed up has no gradient") {
  const Array gradient = Array(1, DataType::kFloat).gradient();
  CHECK(gradient.make_gradient().ok());
  expect_close(gradient.write(0, Tensor::scalar(1.0f)), kFlow);
  CHECK(gradient.make_gradient("second").ok());
  expect_close(gradient.write(0, Tensor::scalar(1.0f)), kFlow);
  expect_error(gradient.make_gradient(), Code::kInvalidArgument,
               "tensor array \"a@g\": it has no gradient, since values were "
               "added up in one index");
}

TEST_CASE("gradient arrays: a shape to prepend must be known") {
  const OneStep step;
  const Tensor handle = step.array(1, DataType::kFloat);
  const AttrMap source{{"source", "g"}};
  expect_error(step.run("TensorArrayGradWithShape",
                        {handle, kFlow, int_row({-1})}, source),
               Code::kInvalidArgument,
               "shape_to_prepend must be a shape, not int32[1] {-1}");
  expect_error(step.run("TensorArrayGradWithShape",
                        {handle, kFlow, int_row({-2})}, source),
               Code::kInvalidArgument, "shape_to_prepend: ");
}

TEST_CASE("gradient arrays: a shape to prepend must leave a possible one") {
  const Array array(1, DataType::kFloat,
                    {{"element_shape", PartialShape{1, 1, 1}}});
  expect_error(array.make_wide_gradient(ones_of(254)), Code::kInvalidArgument,
               "[TensorArrayGradWithShape] elements of [1,1,1] below "
               "[1,1,1,1,");
  expect_error(array.make_wide_gradient(ones_of(254)), Code::kInvalidArgument,
               "would have 257 dimensions, more than 254");
  // Also if only what was written says the shape.
  const Array open(1, DataType::kFloat);
  expect_close(open.write(0, Tensor::vector<float>({1})), kFlow);
  expect_error(open.make_wide_gradient(ones_of(254)), Code::kInvalidArgument,
               "would have 255 dimensions, more than 254");
  const Array deepest = open.gradient("deepest", ones_of(253));
  const auto zero = deepest.read(0);
  REQUIRE(zero.ok());
  CHECK((*zero)[0].rank() == 254);
  const Array huge =
      array.gradient("huge", int_row({1 << 30, 1 << 30, 1 << 30}));
  expect_error(huge.read(0), Code::kInvalidArgument,
               "[shape] the number of elements of "
               "[1073741824,1073741824,1073741824,1,1,1] overflows");
}

TEST_CASE("gradient arrays: nested ones are freed without recursion") {
  constexpr size_t kDepth = 100'000;
  OneStep step;
  Tensor array = step.array(1, DataType::kFloat);
  Tensor last = deep_gradient(step, array, kDepth);
  CHECK(step.resources.alive() == kDepth + 1);
  // Messages do not name all of them.
  CHECK(last.data<ResourceHandle>()->get()->describe().size() < 400);
  array = Tensor();
  CHECK(step.resources.alive() == 1);
  last = Tensor();
  CHECK(step.resources.alive() == 0);
  // A step that ends, and a close, let go of them too.
  array = step.array(1, DataType::kFloat);
  deep_gradient(step, array, kDepth);
  CHECK(step.run("TensorArrayCloseV3", {array}).ok());
  CHECK(step.resources.alive() == 1);
  array = step.array(1, DataType::kFloat);
  deep_gradient(step, array, kDepth);
  step.resources.end();
  CHECK(array.data<ResourceHandle>()->get()->unique());
}

TEST_CASE("an array and its gradients are gone with their handles") {
  OneStep step;
  {
    Tensor gradient;
    {
      const Tensor array = step.array(1, DataType::kFloat);
      gradient =
          step.value("TensorArrayGradV3", {array, kFlow}, {{"source", "g"}});
      CHECK(step.resources.alive() == 2);
    }
    CHECK(step.resources.alive() == 1);
  }
  CHECK(step.resources.alive() == 0);
  // One that holds itself goes with the step.
  const Tensor own = step.array(1, DataType::kResource);
  step.value("TensorArrayWriteV3", {own, Tensor::scalar(0), own, kFlow});
  step.resources.end();
  CHECK(own.data<ResourceHandle>()->get()->unique());
}
