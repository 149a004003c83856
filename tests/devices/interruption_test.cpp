// Kernels that end because their step was cancelled: Note [Interruption].
#include "devices/kernels/linalg/interruption.h"

#include <doctest/doctest.h>

#include <Eigen/Core>
#include <atomic>
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "graph/graph.h"
#include "graph/status_exception.h"
#include "tests/devices/kernel_fixture.h"

using namespace tagflow;           // NOLINT: tests
using namespace tagflow::devices;  // NOLINT

namespace {

// Host memory that cancels the step when a kernel asks for some: the kernel has
// begun, and has checked its inputs.
class CancellingMemory final : public Allocator {
 public:
  explicit CancellingMemory(std::atomic<bool>& cancelled)
      : cancelled_(cancelled) {}
  Buffer* allocate(DataType dtype, int64_t count) override {
    cancelled_.store(true);
    return host_allocator().allocate(dtype, count);
  }
  void deallocate(Buffer* buffer) override {
    host_allocator().deallocate(buffer);
  }

 private:
  std::atomic<bool>& cancelled_;
};

struct Call {
  const char* op;
  std::vector<Tensor> inputs;
  AttrMap attrs = {};
};

// The status of the op's kernel in that step.
Status status_in(const StepInfo& step, const Call& call, Allocator& memory) {
  graph::Graph graph;
  std::vector<graph::Endpoint> endpoints;
  for (const Tensor& input : call.inputs)
    endpoints.push_back({graph
                             .add(graph.unique_name("input"), "Placeholder", {},
                                  {{"dtype", input.dtype()}})
                             .value(),
                         0});
  const auto node = graph.add("op", call.op, endpoints, call.attrs);
  if (!node.ok()) return node.status();
  const auto kernel = KernelRegistry::global().make(**node, "CPU");
  if (!kernel.ok()) return kernel.status();
  const Tag tag;
  std::vector<Tensor> inputs = call.inputs;
  std::vector<Tensor> outputs(size_t((*node)->num_outputs()));
  KernelContext context(*node, inputs, outputs, &step, &tag, &memory);
  return run_kernel(**kernel, context);
}

// The status of the op's kernel, whose step is cancelled before it, or while it
// runs.
Status cancelled_status(const Call& call, bool before) {
  std::atomic<bool> cancelled = before;
  CancellingMemory memory(cancelled);
  StepInfo step;
  step.cancelled = &cancelled;
  Status status = status_in(step, call, memory);
  // A kernel that needed no memory was not cancelled.
  return cancelled || !status.ok() ? status : error(Code::kCancelled, "");
}

Tensor texts(int64_t count) {
  Tensor all = Tensor::make(DataType::kString, Shape{count});
  for (int64_t i = 0; i < count; ++i)
    all.mutable_data<std::string>()[i] = std::string("word ") + char('a' + i);
  return all;
}

// 1, 2, ...
template <class T = float>
Tensor numbers(const Shape& shape) {
  Tensor all = Tensor::make(kDataTypeOf<T>, shape);
  for (int64_t i = 0; i < all.num_elements(); ++i)
    all.mutable_data<T>()[i] = T(i + 1);
  return all;
}

// Not singular, and positive definite.
Tensor matrix(int64_t side) {
  Tensor all = Tensor::make(DataType::kDouble, Shape{side, side});
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < side; ++j)
      all.mutable_data<double>()[i * side + j] =
          i == j ? double(2 * side) : 1 / double(1 + i + j);
  return all;
}

std::vector<Call> text_calls() {
  const Tensor row = texts(4);
  const Tensor splits = Tensor::vector<int64_t>({0, 4});
  return {
      {"RegexReplace", {row, Tensor::scalar("w"), Tensor::scalar("x")}},
      {"RegexFullMatch", {row, Tensor::scalar("w.*")}},
      {"StaticRegexReplace",
       {row},
       {{"pattern", std::string("w")}, {"rewrite", std::string("x")}}},
      {"StaticRegexFullMatch", {row}, {{"pattern", std::string("w.*")}}},
      {"StringJoin", {row, row}},
      {"ReduceJoin",
       {row.reshaped(Shape{2, 2}).value(), Tensor::vector<int32_t>({1})}},
      {"StringLength", {row}},
      {"StringUpper", {row}},
      {"StringStrip", {row}},
      {"Substr", {row, Tensor::scalar(0), Tensor::scalar(2)}},
      {"StringNGrams",
       {row, splits},
       {{"separator", std::string(" ")},
        {"ngram_widths", std::vector<int64_t>{2}},
        {"left_pad", std::string()},
        {"right_pad", std::string()},
        {"pad_width", int64_t{0}},
        {"preserve_short_sequences", false}}},
      {"StringToHashBucketFast", {row}, {{"num_buckets", int64_t{7}}}},
      {"AsString", {numbers(Shape{4})}},
      {"EncodeBase64", {row}},
      {"DecodeRaw", {row}, {{"out_type", DataType::kUInt8}}},
      {"Tile", {row, Tensor::vector<int32_t>({500})}},
  };
}

std::vector<Call> array_calls() {
  const Tensor x = numbers(Shape{4, 6});
  const Tensor rows = Tensor::vector<int32_t>({0, 1, 1, 0});
  const auto indices = Tensor::vector<int32_t>({3, 0, 2, 1});
  return {
      {"TopKV2", {x, Tensor::scalar(3)}},
      {"NthElement", {x, Tensor::scalar(3)}},
      {"Unique", {indices}},
      {"ListDiff", {indices, Tensor::vector<int32_t>({2})}},
      {"LowerBound", {x, x}},
      {"OneHot",
       {indices, Tensor::scalar(4), Tensor::scalar(1.0f),
        Tensor::scalar(0.0f)}},
      {"Where", {x}},
      {"Range", {Tensor::scalar(0), Tensor::scalar(9), Tensor::scalar(1)}},
      {"MatrixBandPart",
       {x, Tensor::scalar<int64_t>(1), Tensor::scalar<int64_t>(1)}},
      {"ScatterNd",
       {indices.reshaped(Shape{4, 1}).value(), numbers(Shape{4}),
        Tensor::vector<int32_t>({4})}},
      {"DynamicPartition", {x, rows}, {{"num_partitions", int64_t{2}}}},
      {"DynamicStitch", {indices, x}, {{"N", int64_t{1}}}},
      {"UnsortedSegmentSum", {numbers(Shape{4}), rows, Tensor::scalar(2)}},
      {"Cumsum", {x, Tensor::scalar(1)}},
      {"CumulativeLogsumexp", {x, Tensor::scalar(1)}},
      {"ArgMax", {x, Tensor::scalar(0)}},
      {"Bincount",
       {indices, Tensor::scalar(4), Tensor::make(DataType::kInt32, Shape{0})}},
      {"Sum", {x, Tensor::vector<int32_t>({1})}},
      {"RandomShuffle", {x}},
      {"InvertPermutation", {indices}},
      {"Cross", {numbers(Shape{4, 3}), numbers(Shape{4, 3})}},
      {"TensorListFromTensor",
       {x, Tensor::vector<int32_t>({6})},
       {{"element_dtype", DataType::kFloat}, {"shape_type", DataType::kInt32}}},
  };
}

std::vector<Call> product_calls() {
  const Tensor m = matrix(8);
  const Tensor images = numbers(Shape{1, 4, 4, 2});
  const Tensor filter = numbers(Shape{2, 2, 2, 3});
  const Tensor outs = numbers(Shape{1, 4, 4, 3});
  const AttrMap window = {{"strides", std::vector<int64_t>{1, 1, 1, 1}},
                          {"padding", std::string("SAME")}};
  AttrMap pool = window;
  pool["ksize"] = std::vector<int64_t>{1, 2, 2, 1};
  const Tensor sizes = Tensor::vector<int32_t>({1, 4, 4, 2});
  return {
      {"MatMul", {m, m}},
      {"BatchMatMulV2", {m, m}},
      {"Einsum", {m, m}, {{"equation", std::string("ij,jk->ik")}}},
      {"Cholesky", {m}},
      {"Svd", {m}},
      {"Qr", {m}},
      {"SelfAdjointEigV2", {m}},
      {"MatrixInverse", {m}},
      {"MatrixSolve", {m, m}},
      {"MatrixTriangularSolve", {m, m}},
      {"MatrixDeterminant", {matrix(4)}},
      {"Conv2D", {images, filter}, window},
      {"Conv2DBackpropInput", {sizes, filter, outs}, window},
      {"Conv2DBackpropFilter",
       {images, Tensor::vector<int32_t>({2, 2, 2, 3}), outs},
       window},
      {"DepthwiseConv2dNative", {images, numbers(Shape{2, 2, 2, 1})}, window},
      {"MaxPool", {images}, pool},
      {"AvgPool", {images}, pool},
      {"AvgPoolGrad", {sizes, images}, pool},
      {"ResizeBilinear", {images, Tensor::vector<int32_t>({8, 8})}},
      {"ResizeNearestNeighbor", {images, Tensor::vector<int32_t>({8, 8})}},
      {"LRN", {images}},
      {"LogUniformCandidateSampler",
       {Tensor::make(DataType::kInt64, Shape{0, 1})},
       {{"num_true", int64_t{1}},
        {"num_sampled", int64_t{999'999}},
        {"unique", true},
        {"range_max", int64_t{1'000'000}}}},
  };
}

std::vector<Call> sparse_calls() {
  const Tensor indices =
      Tensor::vector<int64_t>({1, 0, 0, 1, 0, 0}).reshaped(Shape{3, 2}).value();
  const Tensor sorted =
      Tensor::vector<int64_t>({0, 0, 0, 1, 1, 0}).reshaped(Shape{3, 2}).value();
  const Tensor values = numbers(Shape{3});
  const Tensor shape = Tensor::vector<int64_t>({2, 2});
  return {
      {"SparseReorder", {indices, values, shape}},
      {"SparseReshape", {sorted, shape, Tensor::vector<int64_t>({4, 1})}},
      {"SparseToDense", {sorted, shape, values, Tensor::scalar(0.0f)}},
      {"SparseAdd",
       {sorted, values, shape, sorted, values, shape, Tensor::scalar(0.0f)}},
      {"SparseReduceSum",
       {sorted, values, shape, Tensor::vector<int32_t>({0})}},
      {"SparseSoftmax", {sorted, values, shape}},
      {"SparseFillEmptyRows", {sorted, values, shape, Tensor::scalar(0.0f)}},
      {"SparseTensorDenseMatMul",
       {sorted, values, shape, numbers(Shape{2, 2})}},
      {"RaggedRange",
       {Tensor::vector<int32_t>({0, 2}), Tensor::vector<int32_t>({3, 9}),
        Tensor::vector<int32_t>({1, 1})}},
  };
}

void check_all_stop(const std::vector<Call>& calls) {
  for (const Call& call : calls) {
    CAPTURE(std::string(call.op));
    for (const bool before : {true, false}) {
      CAPTURE(before);
      const Status status = cancelled_status(call, before);
      INFO(status.to_string());
      CHECK(status.code() == Code::kCancelled);
    }
  }
}

}  // namespace

TEST_CASE("a kernel on strings stops when its step is cancelled") {
  check_all_stop(text_calls());
}

TEST_CASE("a kernel that moves or orders elements stops when cancelled") {
  check_all_stop(array_calls());
}

TEST_CASE("a kernel that multiplies or decomposes stops when cancelled") {
  check_all_stop(product_calls());
}

TEST_CASE("a kernel on sparse tensors stops when its step is cancelled") {
  check_all_stop(sparse_calls());
}

TEST_CASE("a kernel that computes a text stops when its step is cancelled") {
  const Call format{"StringFormat",
                    {texts(4)},
                    {{"T", std::vector<DataType>{DataType::kString}},
                     {"template", std::string("%s")},
                     {"placeholder", std::string("%s")}}};
  CHECK(cancelled_status(format, true).code() == Code::kCancelled);
  for (const char* op : {"Assert", "Print"}) {
    const Call show{op, {Tensor::scalar(false), numbers(Shape{4})}};
    CHECK(cancelled_status(show, true).code() == Code::kCancelled);
  }
  const Call split{"StringSplitV2", {texts(4), Tensor::scalar("")}};
  CHECK(cancelled_status(split, true).code() == Code::kCancelled);
}

TEST_CASE("Unique stops when cancelled, though its tensor has no elements") {
  const Call unique{"UniqueV2",
                    {Tensor::make(DataType::kFloat, Shape{0, 1 << 20}),
                     Tensor::vector<int32_t>({1})}};
  CHECK(cancelled_status(unique, false).code() == Code::kCancelled);
}

namespace {

// Cancels the step when a worker begins a range.
class CancellingParallel final : public Parallel {
 public:
  explicit CancellingParallel(std::atomic<bool>& cancelled)
      : cancelled_(cancelled) {}
  void run(int64_t total, double, RangeBody body) override {
    cancelled_ = true;
    body(0, total);
  }

 private:
  std::atomic<bool>& cancelled_;
};

}  // namespace

TEST_CASE("a scatter stops within the slices of a worker when cancelled") {
  // Slices that are divided by columns, and by their numbers.
  for (const int64_t size : {1 << 12, 1 << 5}) {
    CAPTURE(size);
    std::atomic<bool> cancelled = false;
    CancellingParallel parallel(cancelled);
    StepInfo step;
    step.cancelled = &cancelled;
    step.parallel = &parallel;
    const Call scatter{
        "ScatterNd",
        {*Tensor::vector<int32_t>({0, 0}).reshaped({2, 1}),
         numbers(Shape{2, size}), Tensor::vector<int32_t>({1, int32_t(size)})}};
    CHECK(status_in(step, scatter, host_allocator()).code() ==
          Code::kCancelled);
    CHECK(cancelled);
  }
}

TEST_CASE("blocks of a kernel's range end at a cancellation") {
  graph::Graph graph;
  const graph::Node* node = graph.add("op", "NoOp", {}, {}).value();
  std::atomic<bool> cancelled = false;
  StepInfo step;
  step.cancelled = &cancelled;
  const Tag tag;
  KernelContext context(node, {}, {}, &step, &tag);
  for (const bool parallel : {true, false}) {
    CAPTURE(parallel);
    cancelled = false;
    int64_t blocks = 0, covered = 0;
    const auto body = [&](int64_t begin, int64_t end) {
      CHECK(begin == covered);
      covered = end;
      if (++blocks == 3) cancelled = true;
    };
    const double cost = KernelContext::kBlockNanoseconds / 4;
    const auto run = [&] {
      if (parallel) {
        context.parallel_for(100, cost, body);
      } else {
        context.for_blocks(100, cost, body);
      }
    };
    CHECK_THROWS_AS(run(), StatusException);
    CHECK(blocks == 3);
    CHECK(covered == 12);
    // What a call costs beside makes blocks longer.
    cancelled = false;
    blocks = covered = 0;
    context.parallel_for(100, cost, body, 1e9);
    CHECK(covered == 100);
    CHECK(blocks == 1);
  }
}

TEST_CASE("nobody interrupts a kernel that changes state") {
  graph::Graph graph;
  const graph::Node* node = graph.add("op", "NoOp", {}, {}).value();
  std::atomic<bool> cancelled = true;
  CommitGate gate([] {});
  StepInfo step;
  step.cancelled = &cancelled;
  step.commits = &gate;
  const Tag tag;
  KernelContext context(node, {}, {}, &step, &tag);
  {
    const Commit commit = context.commit();
    context.check_cancelled();
    int64_t done = 0;
    context.parallel_for(
        10, 1e9, [&](int64_t begin, int64_t end) { done += end - begin; });
    CHECK(done == 10);
  }
  CHECK_THROWS_AS(context.check_cancelled(), StatusException);
}

TEST_CASE("a decomposition of one large matrix looks for a cancellation") {
  // As if the matrix were large, which would take seconds.
  std::atomic<bool> cancelled = true;
  StepInfo step;
  step.cancelled = &cancelled;
  graph::Graph graph;
  const graph::Node* node = graph.add("op", "NoOp", {}, {}).value();
  const Tag tag;
  const KernelContext context(node, {}, {}, &step, &tag);
  for (const char* op : {"Svd", "Qr", "SelfAdjointEigV2", "Cholesky", "Lu",
                         "MatrixInverse", "LogMatrixDeterminant"}) {
    CAPTURE(op);
    decomposing = &context;
    const auto result = run_op(op, {matrix(40)});
    decomposing = nullptr;
    CHECK(result.status().code() == Code::kCancelled);
    CHECK(run_op(op, {matrix(40)}).ok());
  }
}
