#include "devices/cpu/tensor_array.h"

#include <atomic>
#include <thread>

#include "graph/dtype_visit.h"
#include "tests/devices/one_step.h"

using namespace tagflow;
using namespace tagflow::devices;

namespace {

const Tensor kFlow = Tensor::scalar(0.0f);

Tensor int_row(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

// The ops over one array, in a step of their own.
class Array {
 public:
  Array(int size, DataType dtype, AttrMap attrs = {})
      : dtype_(dtype),
        handle_(step_.array(size, dtype, named(std::move(attrs)))) {}

  Result<Outputs> write(int index, const Tensor& value) const {
    return step_.run("TensorArrayWriteV3",
                     {handle_, Tensor::scalar(index), value, kFlow});
  }
  Result<Outputs> read(int index) const {
    return step_.run("TensorArrayReadV3",
                     {handle_, Tensor::scalar(index), kFlow},
                     {{"dtype", dtype_}});
  }
  Result<Outputs> gather(const Tensor& indices, PartialShape shape = {}) const {
    return step_.run("TensorArrayGatherV3", {handle_, indices, kFlow},
                     {{"dtype", dtype_}, {"element_shape", std::move(shape)}});
  }
  Result<Outputs> scatter(const Tensor& indices, const Tensor& value) const {
    return step_.run("TensorArrayScatterV3", {handle_, indices, value, kFlow});
  }
  Result<Outputs> concat(PartialShape rest = {}) const {
    return step_.run(
        "TensorArrayConcatV3", {handle_, kFlow},
        {{"dtype", dtype_}, {"element_shape_except0", std::move(rest)}});
  }
  Result<Outputs> split(const Tensor& value,
                        std::initializer_list<int64_t> lengths) const {
    return step_.run("TensorArraySplitV3",
                     {handle_, value, Tensor::vector<int64_t>(lengths), kFlow});
  }
  int size() const {
    return step_.value("TensorArraySizeV3", {handle_, kFlow})
        .scalar_value<int32_t>();
  }
  Result<Outputs> close() const {
    return step_.run("TensorArrayCloseV3", {handle_});
  }
  Result<Outputs> make_gradient(const std::string& source = "g") const {
    return step_.run("TensorArrayGradV3", {handle_, kFlow},
                     {{"source", source}});
  }
  // That of elements of shape `prepend` and what follows.
  Result<Outputs> make_wide_gradient(const Tensor& prepend,
                                     const std::string& source = "g") const {
    return step_.run("TensorArrayGradWithShape", {handle_, kFlow, prepend},
                     {{"source", source}});
  }
  // The gradient array, or where `prepend` is given, that of such shapes.
  Array gradient(const std::string& source = "g",
                 const Tensor& prepend = Tensor()) const {
    Array result = *this;
    const auto made = prepend.valid() ? make_wide_gradient(prepend, source)
                                      : make_gradient(source);
    INFO(made.status().to_string());
    REQUIRE(made.ok());
    result.handle_ = (*made)[0];
    return result;
  }
  size_t alive() const { return shared_->resources.alive(); }

  const Tensor& handle() const { return handle_; }

 private:
  static AttrMap named(AttrMap attrs) {
    attrs["tensor_array_name"] = "a";
    return attrs;
  }

  std::shared_ptr<OneStep> shared_ = std::make_shared<OneStep>();
  const OneStep& step_ = *shared_;
  DataType dtype_;
  Tensor handle_;
};

const AttrMap kKeep{{"clear_after_read", false}};

const AttrMap kDynamic{{"dynamic_size", true}};

Tensor ones_of(int count) {
  const std::vector<int32_t> ones(size_t(count), 1);
  return Tensor::of<int32_t>({count}, std::span<const int32_t>(ones));
}

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

TEST_CASE("many rows are moved by several workers") {
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
  // What comes later is not part of what was split.
  expect_close(split.write(2, int_row({4})), kFlow);
  CHECK(split.size() == 3);
  expect_close(split.concat(), int_row({1, 2, 3}));
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
  CHECK(growing.size() == 2);
  expect_error(growing.split(Tensor::vector<float>({1}), {1}),
               Code::kInvalidArgument, "1 elements are wanted, the size is 2");
}

TEST_CASE("an element is written once") {
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

TEST_CASE("an element that is cleared after its read is read once") {
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

TEST_CASE("what was not written reads as zeros where its shape is known") {
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

TEST_CASE("zeros of a shape that no tensor can have are refused") {
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

TEST_CASE("elements that differ in shape are not gathered or joined") {
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

TEST_CASE("what a tensor array cannot be given is refused") {
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
               "[TensorArrayGatherV3] of no elements the shape must be known, "
               "not <unknown>");
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
               "lengths leave 1 rows of float[2]");
  expect_error(array.split(two, {3, -1}), Code::kInvalidArgument,
               "lengths say more rows");
  expect_error(array.split(two, {-1, 3}), Code::kInvalidArgument,
               "length -1 is negative");
  expect_error(
      step.run("TensorArraySplitV3",
               {array.handle(), two, Tensor::scalar(int64_t{2}), kFlow}),
      Code::kInvalidArgument, "lengths must be a vector, not int64[]");
  expect_error(Array(0, DataType::kFloat).concat(), Code::kUnimplemented,
               "of no elements element_shape_except0 must be known");
  expect_error(step.run("TensorArraySizeV3",
                        {Tensor::make(DataType::kResource, {}), kFlow}),
               Code::kInvalidArgument,
               "input 0 is no tensor array but an empty handle");
  expect_error(run_op("TensorArrayV3", {Tensor::scalar(1)}, floats),
               Code::kInternal, "there is no step to keep the object in");
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

TEST_CASE("one source names one gradient array") {
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

TEST_CASE("sums have no gradient") {
  const Array gradient = Array(1, DataType::kFloat).gradient();
  CHECK(gradient.make_gradient().ok());
  expect_close(gradient.write(0, Tensor::scalar(1.0f)), kFlow);
  CHECK(gradient.make_gradient("second").ok());
  expect_close(gradient.write(0, Tensor::scalar(1.0f)), kFlow);
  expect_error(gradient.make_gradient(), Code::kInvalidArgument,
               "tensor array \"a@g\": it has no gradient, since values were "
               "added up in one index");
}

TEST_CASE("a shape to prepend must be known") {
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

TEST_CASE("a shape to prepend must leave one that a tensor can have") {
  const Array array(1, DataType::kFloat,
                    {{"element_shape", PartialShape{1, 1, 1}}});
  expect_error(array.make_wide_gradient(ones_of(254)), Code::kInvalidArgument,
               "[TensorArrayGradWithShape] elements of [1,1,1] below "
               "[1,1,1,1,");
  expect_error(array.make_wide_gradient(ones_of(254)), Code::kInvalidArgument,
               "would have 257 dimensions, more than 254");
  // Also where only what was written says the shape.
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

TEST_CASE("gradients of gradients of ... are let go of without recursion") {
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
