// Kernels on a GPU on shapes and sizes that recorded cases do not have.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/dtype_visit.h"
#include "tests/devices/cuda/gpu.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

const std::vector<DataType> kFloating = {DataType::kFloat, DataType::kDouble,
                                         DataType::kHalf, DataType::kBFloat16};
const std::vector<DataType> kNumbers = {DataType::kFloat, DataType::kDouble,
                                        DataType::kHalf,  DataType::kBFloat16,
                                        DataType::kInt32, DataType::kInt64};

// Of results of real numbers.
double tolerance_of(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return 2e-5;
    case DataType::kDouble:
      return 1e-11;
    case DataType::kHalf:
      return 1e-2;
    case DataType::kBFloat16:
      return 5e-2;
    default:
      return 0;
  }
}

Tensor ints(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

// As expect_as_on_cpu(), of an op that must have a kernel.
void expect_same(Device& gpu, std::string_view op,
                 const std::vector<Tensor>& inputs, const AttrMap& attrs = {}) {
  std::string what(op);
  for (const Tensor& input : inputs) what += " " + input.describe();
  INFO(what);
  CHECK(expect_as_on_cpu(gpu, op, inputs, attrs,
                         tolerance_of(inputs[0].dtype())));
}

}  // namespace

TEST_CASE("element-wise ops broadcast on a GPU as they do on the CPU") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  const std::pair<Shape, Shape> kShapes[] = {
      {{1000}, {1000}},
      {{70, 300}, {300}},
      {{70, 300}, {70, 1}},
      {{70, 1}, {1, 300}},
      {{5, 1, 7, 1, 3}, {2, 7, 4, 1}},
      {{}, {33, 100}},
      {{2, 1, 2, 1, 2, 1, 2}, {1, 3, 1, 3, 1, 3, 1}},
      {{0, 5}, {5}},
      {{100000}, {1}},
  };
  uint32_t seed = 0;
  for (const auto& [x, y] : kShapes)
    for (const DataType dtype : kNumbers) {
      ++seed;
      for (const char* op : {"AddV2", "Mul", "Maximum", "Less", "Equal"})
        expect_same(*gpu, op,
                    {random_tensor(dtype, x, seed),
                     random_tensor(dtype, y, seed + 100)});
    }
  for (const DataType dtype : kFloating)
    for (const char* op : {"Exp", "Tanh", "Sigmoid", "Relu", "Erf", "Sqrt",
                           "Neg", "Floor", "Softplus"})
      expect_same(*gpu, op, {random_tensor(dtype, {300, 33}, ++seed, false)});
}

TEST_CASE("GPU kernels: the absolute value of -0 has no sign") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  for (const DataType dtype : kFloating) {
    Tensor zeros = Tensor::make(dtype, {100});
    CHECK(visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (requires { T(-0.0F); })
        for (T& zero : zeros.mutable_flat<T>()) zero = T(-0.0F);
    }));
    const Computed computed = on_gpu(*gpu, "Abs", {zeros});
    REQUIRE_MESSAGE(computed.status.ok(), computed.status.to_string());
    CHECK(identical(computed.outputs[0], on_cpu("Abs", {zeros}).outputs[0]));
  }
}

TEST_CASE("GPU kernels refuse inputs with the CPU's error messages") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  const Tensor matrix = random_tensor(DataType::kFloat, {30, 20}, 1);
  expect_same(*gpu, "AddV2", {matrix, floats(30)});
  expect_same(*gpu, "ReluGrad", {matrix, floats(30)});
  expect_same(*gpu, "MatMul", {matrix, matrix});
  expect_same(*gpu, "MatMul", {matrix, floats(30)});
  expect_same(*gpu, "Sum", {matrix, ints({2})});
  expect_same(*gpu, "Sum", {matrix, ints({0, 0})});
  expect_same(*gpu, "BiasAdd", {matrix, floats(30)});
  expect_same(*gpu, "Softmax", {Tensor::scalar(1.0F)});
  expect_same(*gpu, "Reshape", {matrix, ints({7, -1})});
  expect_same(*gpu, "ConcatV2", {matrix, floats(30), Tensor::scalar(0)});
  expect_same(*gpu, "AddN", {matrix, floats(30)});
  expect_same(*gpu, "ArgMax", {matrix, Tensor::scalar(2)});
  expect_same(*gpu, "Transpose", {matrix, ints({0, 0})});
  expect_same(*gpu, "FloorDiv",
              {random_tensor(DataType::kInt32, {100}, 1), Tensor::scalar(0)});
}

TEST_CASE("GPU kernels: reductions of all forms agree with the CPU's") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  const std::pair<Shape, std::vector<Tensor>> kCases[] = {
      {{100000}, {ints({0})}},
      {{3, 50000}, {ints({1}), ints({0}), ints({0, 1})}},
      {{6000, 5}, {ints({0}), ints({1})}},
      {{5, 7, 11, 13}, {ints({0, 2}), ints({1, 3}), ints({-1}), ints({})}},
      {{0, 4}, {ints({0}), ints({1})}},
      {{1, 1}, {ints({0})}},
  };
  uint32_t seed = 0;
  for (const auto& [shape, lists] : kCases)
    for (const Tensor& axes : lists) {
      for (const DataType dtype : kNumbers) {
        // Sums of so many are not exact in 16 bits.
        const Tensor input = random_tensor(dtype, shape, ++seed);
        for (const char* op : {"Sum", "Mean", "Max", "Min"})
          for (const bool keep : {false, true})
            expect_same(*gpu, op, {input, axes}, {{"keep_dims", keep}});
      }
      const Tensor flags = random_tensor(DataType::kBool, shape, ++seed);
      expect_same(*gpu, "All", {flags, axes});
      expect_same(*gpu, "Any", {flags, axes});
    }
  for (const DataType dtype : kNumbers)
    expect_same(*gpu, "Prod",
                {random_tensor(dtype, {40, 6}, ++seed), ints({1})});
  expect_same(*gpu, "L2Loss",
              {random_tensor(DataType::kFloat, {100, 100}, ++seed, false)});
  for (const char* format : {"NHWC", "NCHW"}) {
    const Tensor value = random_tensor(DataType::kFloat, {8, 6, 10, 6}, ++seed);
    expect_same(*gpu, "BiasAdd", {value, floats(6)},
                {{"data_format", std::string(format)}});
    expect_same(*gpu, "BiasAddGrad", {value},
                {{"data_format", std::string(format)}});
  }
}

TEST_CASE("GPU kernels: a sum of many terms does not lose the small ones") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  // One after another, each 1 would be rounded away. By a thread for each
  // sum, and by blocks.
  for (const int64_t width : {5000, 50}) {
    Tensor terms = Tensor::make(DataType::kFloat, {2000, width});
    float* elements = terms.mutable_data<float>();
    std::fill_n(elements, terms.num_elements(), 1.0F);
    std::fill_n(elements, width, 16777216.0F);
    expect_same(*gpu, "Sum", {terms, ints({0})});
  }
}

TEST_CASE("GPU kernels over rows: softmax, ArgMax and ArgMin") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  uint32_t seed = 0;
  for (const DataType dtype : kFloating)
    for (const Shape& shape : {Shape{7, 1000}, Shape{5000, 3}, Shape{1, 40000},
                               Shape{3, 4, 5}, Shape{0, 5}})
      for (const char* op : {"Softmax", "LogSoftmax"})
        expect_same(*gpu, op, {random_tensor(dtype, shape, ++seed, false)});
  for (const DataType dtype : kNumbers)
    for (const char* op : {"ArgMax", "ArgMin"})
      for (const int axis : {0, 1, -1})
        for (const DataType result : {DataType::kInt32, DataType::kInt64})
          expect_same(*gpu, op,
                      {random_tensor(dtype, {30, 400, 3}, ++seed),
                       Tensor::scalar(axis)},
                      {{"output_type", result}});
}

TEST_CASE("GPU kernels: cross entropies, of labels of both kinds") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  uint32_t seed = 0;
  const char* dense = "SoftmaxCrossEntropyWithLogits";
  const char* sparse = "SparseSoftmaxCrossEntropyWithLogits";
  for (const DataType dtype : kFloating) {
    for (const Shape& shape :
         {Shape{7, 1000}, Shape{300, 3}, Shape{1, 1}, Shape{0, 5}}) {
      const Tensor logits = random_tensor(dtype, shape, ++seed, false);
      // What sums up to 1: else the sum of many terms loses most of its bits.
      const Tensor weights =
          on_cpu("Softmax", {random_tensor(dtype, shape, ++seed, false)})
              .outputs[0];
      expect_same(*gpu, dense, {logits, weights});
      Tensor labels = Tensor::make(DataType::kInt64, {shape.dim(0)});
      for (int64_t i = 0; i < shape.dim(0); ++i)
        labels.mutable_data<int64_t>()[i] = i * 7 % shape.dim(1);
      expect_same(*gpu, sparse, {logits, labels});
    }
    // Both broadcast.
    expect_same(*gpu, dense,
                {random_tensor(dtype, {1, 40}, ++seed, false),
                 random_tensor(dtype, {9, 40}, ++seed, false)});
    expect_same(*gpu, dense,
                {random_tensor(dtype, {9, 40}, ++seed, false),
                 random_tensor(dtype, {9, 1}, ++seed, false)});
    expect_same(*gpu, dense,
                {random_tensor(dtype, {5, 0}, ++seed),
                 random_tensor(dtype, {5, 0}, ++seed)});
    expect_same(*gpu, sparse,
                {random_tensor(dtype, {3, 4}, ++seed, false), ints({3, 0, 1})});
  }
  // A class of no weight: its logit may be -inf.
  Tensor logits = Tensor::of<float>({1, 3}, {1, -INFINITY, 2});
  expect_same(*gpu, sparse, {logits, ints({2})});
}

TEST_CASE("GPU kernels: a label that is not a class is an error or NaN") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  const char* op = "SparseSoftmaxCrossEntropyWithLogits";
  const Tensor logits = random_tensor(DataType::kFloat, {2, 3}, 1, false);
  for (const int wrong : {-1, 3}) {
    const Tensor labels = ints({1, wrong});
    const Computed on_host = on_gpu(*gpu, op, {logits, labels}, {}, false);
    CHECK(on_host.status.message().find(
              fmt::format("label {} of row 1 is out of range [0, 3)", wrong)) !=
          std::string::npos);
    const Computed there = on_gpu(*gpu, op, {logits, labels});
    REQUIRE_MESSAGE(there.status.ok(), there.status.to_string());
    CHECK_FALSE(std::isnan(there.outputs[0].data<float>()[0]));
    CHECK(std::isnan(there.outputs[0].data<float>()[1]));
    CHECK(std::isnan(there.outputs[1].data<float>()[3]));
  }
}

TEST_CASE("GPU kernels: products of matrices, in batches and transposed") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  uint32_t seed = 0;
  for (const DataType dtype : kFloating) {
    for (const bool a : {false, true})
      for (const bool b : {false, true}) {
        expect_same(
            *gpu, "MatMul",
            {random_tensor(dtype, a ? Shape{37, 50} : Shape{50, 37}, ++seed),
             random_tensor(dtype, b ? Shape{20, 37} : Shape{37, 20}, ++seed)},
            {{"transpose_a", a}, {"transpose_b", b}});
        expect_same(
            *gpu, "BatchMatMulV2",
            {random_tensor(dtype, a ? Shape{3, 1, 4, 5} : Shape{3, 1, 5, 4},
                           ++seed),
             random_tensor(dtype, b ? Shape{2, 6, 4} : Shape{2, 4, 6}, ++seed)},
            {{"adj_x", a}, {"adj_y", b}});
      }
    expect_same(*gpu, "MatMul",
                {random_tensor(dtype, {5, 0}, ++seed),
                 random_tensor(dtype, {0, 6}, ++seed)});
    expect_same(*gpu, "MatMul",
                {random_tensor(dtype, {0, 5}, ++seed),
                 random_tensor(dtype, {5, 6}, ++seed)});
  }
}

TEST_CASE("GPU kernels: a small factor is copied for cuBLAS") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  uint32_t seed = 0;
  for (const DataType dtype : kFloating) {
    expect_same(*gpu, "MatMul",
                {random_tensor(dtype, {300, 2}, ++seed),
                 random_tensor(dtype, {2, 1}, ++seed)});
    expect_same(*gpu, "MatMul",
                {random_tensor(dtype, {1, 2}, ++seed),
                 random_tensor(dtype, {2, 1}, ++seed)});
    expect_same(*gpu, "BatchMatMulV2",
                {random_tensor(dtype, {1, 1, 1}, ++seed),
                 random_tensor(dtype, {50, 1, 3}, ++seed)});
  }
}

TEST_CASE("GPU kernels: elements of every type are moved") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  uint32_t seed = 0;
  for (const DataType dtype :
       {DataType::kFloat, DataType::kDouble, DataType::kHalf, DataType::kInt32,
        DataType::kInt64, DataType::kBool, DataType::kUInt8,
        DataType::kComplex64, DataType::kComplex128}) {
    const Tensor cube = random_tensor(dtype, {20, 30, 7}, ++seed);
    const Tensor other = random_tensor(dtype, {20, 5, 7}, ++seed);
    expect_same(*gpu, "Transpose", {cube, ints({2, 0, 1})});
    expect_same(*gpu, "Transpose", {cube, ints({1, 0, 2})});
    expect_same(*gpu, "ConcatV2", {cube, other, cube, Tensor::scalar(1)});
    expect_same(*gpu, "Pack", {cube, cube}, {{"axis", int64_t(2)}});
    expect_same(*gpu, "Unpack", {cube},
                {{"axis", int64_t(2)}, {"num", int64_t(7)}});
    expect_same(*gpu, "Split", {Tensor::scalar(1), cube},
                {{"num_split", int64_t(3)}});
    expect_same(*gpu, "Slice", {cube, ints({3, 0, 2}), ints({10, -1, 4})});
    expect_same(*gpu, "StridedSlice",
                {cube, ints({15, 2, 0}), ints({1, 30, 7}), ints({-2, 3, 1})});
    expect_same(
        *gpu, "StridedSlice",
        {random_tensor(dtype, {500}, ++seed), ints({-3}), ints({0}), ints({1})},
        {{"shrink_axis_mask", int64_t(1)}});
    expect_same(*gpu, "StridedSliceGrad",
                {ints({40}), ints({2}), ints({40}), ints({3}),
                 random_tensor(dtype, {13}, ++seed)});
    expect_same(*gpu, "Tile", {cube, ints({2, 1, 3})});
    expect_same(*gpu, "Pad",
                {cube, Tensor::of<int32_t>({3, 2}, {1, 0, 0, 2, 3, 4})});
    expect_same(*gpu, "ReverseV2", {cube, ints({0, 2})});
    expect_same(*gpu, "BroadcastTo",
                {random_tensor(dtype, {30, 1}, ++seed), ints({4, 30, 9})});
    expect_same(*gpu, "Fill",
                {ints({50, 20}), random_tensor(dtype, {}, ++seed)});
    expect_same(*gpu, "ZerosLike", {cube});
    expect_same(*gpu, "OnesLike", {cube});
    expect_same(*gpu, "Reshape", {cube, ints({-1, 70})});
    expect_same(*gpu, "GatherV2",
                {cube, ints({29, 0, 5, 5, 7, 1, 2, 3}), Tensor::scalar(1)});
    expect_same(*gpu, "GatherV2",
                {random_tensor(dtype, {4, 5, 6, 3}, ++seed),
                 Tensor::of<int64_t>({4, 2}, {0, 5, 1, 4, 2, 3, 3, 2}),
                 Tensor::scalar(2)},
                {{"batch_dims", int64_t(1)}});
    const Tensor flags = random_tensor(DataType::kBool, {20, 1, 7}, ++seed);
    expect_same(*gpu, "SelectV2",
                {flags, cube, random_tensor(dtype, {30, 1}, ++seed)});
    expect_same(*gpu, "Select",
                {random_tensor(DataType::kBool, {20}, ++seed), cube, cube});
  }
  for (const DataType from : kNumbers)
    for (const DataType to : kNumbers)
      for (const bool truncates : {false, true})
        if (from != to)
          expect_same(*gpu, "Cast",
                      {random_tensor(from, {100, 3}, ++seed, false)},
                      {{"DstT", to}, {"Truncate", truncates}});
}

TEST_CASE("GPU kernels: more dimensions than loops are walked over") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  Shape shape, alternating;
  for (int i = 0; i < 11; ++i) shape.add_dim(i < 9 ? 2 : 3);
  expect_same(*gpu, "Transpose",
              {random_tensor(DataType::kFloat, shape, 1),
               ints({10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0})});
  std::vector<int32_t> axes;
  for (int i = 0; i < 18; ++i) {
    alternating.add_dim(2);
    if (i % 2 == 0) axes.push_back(i);
  }
  GpuLaunch sum("Sum", {random_tensor(DataType::kFloat, alternating, 2),
                        Tensor::of<int32_t>({9}, axes)});
  expect_error(sum.on(*gpu->accelerator()).answer(), Code::kUnimplemented,
               "[Sum] a reduction over 9 runs of dimensions, a GPU's kernels "
               "support 8");
}

TEST_CASE("GPU kernels: a wrong index that only the GPU knows gives zeros") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  const Tensor params = floats(100, 1);
  const Tensor known = ints({3, 100});
  // Some that a launch takes along, some that are copied before it, and more.
  for (const int64_t count : {2, 50, 100000}) {
    Tensor indices = Tensor::make(DataType::kInt32, {count});
    std::fill_n(indices.mutable_data<int32_t>(), count, 3);
    indices.mutable_data<int32_t>()[1] = 100;
    GpuLaunch refused("GatherV2",
                      {in_gpu(*gpu, params), indices, Tensor::scalar(0)});
    expect_error(refused.on(*gpu->accelerator()).answer(),
                 Code::kInvalidArgument,
                 "[GatherV2] indices[1] = 100 is outside [0, 100)");
  }
  GpuLaunch zeros("GatherV2", {in_gpu(*gpu, params), in_gpu(*gpu, known),
                               Tensor::scalar(0)});
  const auto fetched =
      to_host(*gpu->accelerator(), zeros.on(*gpu->accelerator()).output());
  REQUIRE(fetched.ok());
  expect_close(*fetched, Tensor::vector<float>({4, 0}));
}

TEST_CASE("GPU kernels: a sum of very many terms is put together") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  for (const DataType dtype : {DataType::kFloat, DataType::kInt64})
    for (const int count : {2, 32, 33, 100}) {
      std::vector<Tensor> terms;
      for (int i = 0; i < count; ++i)
        terms.push_back(random_tensor(dtype, {70, 3}, uint32_t(i)));
      expect_same(*gpu, "AddN", terms, {{"N", int64_t(count)}});
    }
  // 16-bit floats, which cannot count so far, are rounded once.
  for (const DataType dtype : {DataType::kHalf, DataType::kBFloat16}) {
    std::vector<Tensor> terms(96, random_tensor(dtype, {70, 3}, 1, false));
    terms[0] = Tensor::make(dtype, {70, 3});
    CHECK(visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (requires { T(256.0F); })
        for (T& element : terms[0].mutable_flat<T>()) element = T(256.0F);
    }));
    CHECK(expect_as_on_cpu(*gpu, "AddN", terms, {{"N", int64_t(96)}},
                           dtype == DataType::kHalf ? 1e-3 : 8e-3));
  }
}

TEST_CASE("GPU kernels: fused ops run one after another") {
  const auto gpu = gpu_or_skip();
  if (gpu == nullptr) return;
  using Strings = std::vector<std::string>;
  const AttrMap attrs = {
      {"T", DataType::kFloat},
      {"program", Strings{"Mul 0 1", "AddV2 3 2", "Tanh 4", "Mul 5 3"}},
      {"names", Strings{"a", "b", "c", "d"}}};
  expect_same(
      *gpu, "_FusedElementwise",
      {random_tensor(DataType::kFloat, {50, 20}, 1, false),
       random_tensor(DataType::kFloat, {20}, 2, false), Tensor::scalar(0.5F)},
      attrs);
  expect_same(
      *gpu, "_FusedElementwise",
      {random_tensor(DataType::kFloat, {50, 20}, 1, false),
       random_tensor(DataType::kFloat, {7}, 2, false), Tensor::scalar(0.5F)},
      attrs);
  expect_same(*gpu, "_FusedElementwise",
              {random_tensor(DataType::kFloat, {50, 60}, 1, false),
               random_tensor(DataType::kFloat, {50, 20}, 2, false),
               Tensor::scalar(0.5F)},
              {{"T", DataType::kFloat},
               {"program", Strings{"Mul 0 1", "AddV2 3 2"}},
               {"names", Strings{"a", "b"}},
               {"columns", std::vector<int64_t>{40, 20, 0, 0, 0, 0}}});
}

}  // namespace tagflow::devices
