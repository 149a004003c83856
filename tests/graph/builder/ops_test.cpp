// Every op function adds a node of its op. The tests of definitions and kernels
// cover what the op does.
#include <doctest/doctest.h>

#include "graph/analysis/validate.h"
#include "graph/builder/builder.h"
#include "tests/graph/builder/dump.h"

namespace tagflow::graph {

using namespace ops;

namespace {

// Some tensors to call them with, and "op dtype shape" of a result.
struct Fixture {
  Graph graph;
  Scope s{graph};
  Output matrix = placeholder(s.named("f"), DataType::kFloat, {2, 3});
  Output v = placeholder(s.named("v"), DataType::kFloat, {3});
  Output i = placeholder(s.named("i"), DataType::kInt32, {3});
  Output b = placeholder(s.named("b"), DataType::kBool, {3});

  std::string made(const Output& output) const {
    if (!s.ok()) return s.status().to_string();
    return fmt::format("{} {}{}", output.node()->op(),
                       dtype_name(output.dtype()), output.shape().to_string());
  }
  ~Fixture() {
    const Status status = validate(graph);
    CHECK_MESSAGE(status.ok(), status.to_string());
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "element-wise functions make their ops") {
  using Binary = Output (*)(const Scope&, const Input&, const Input&);
  using Unary = Output (*)(const Scope&, const Input&);
  const std::pair<Binary, const char*> arithmetic[] = {
      {add, "AddV2"},
      {sub, "Sub"},
      {mul, "Mul"},
      {real_div, "RealDiv"},
      {div, "Div"},
      {floor_div, "FloorDiv"},
      {floor_mod, "FloorMod"},
      {truncate_mod, "Mod"},
      {div_no_nan, "DivNoNan"},
      {ops::pow, "Pow"},
      {maximum, "Maximum"},
      {minimum, "Minimum"},
      {ops::atan2, "Atan2"},
      {squared_difference, "SquaredDifference"}};
  for (const auto& [function, op] : arithmetic)
    CHECK(made(function(s, matrix, v)) == fmt::format("{} float[2,3]", op));
  const std::pair<Binary, const char*> comparisons[] = {
      {less, "Less"},       {less_equal, "LessEqual"},
      {greater, "Greater"}, {greater_equal, "GreaterEqual"},
      {equal, "Equal"},     {not_equal, "NotEqual"}};
  for (const auto& [function, op] : comparisons)
    CHECK(made(function(s, matrix, v)) == fmt::format("{} bool[2,3]", op));
  CHECK(made(logical_and(s, b, true)) == "LogicalAnd bool[3]");
  CHECK(made(logical_or(s, b, b)) == "LogicalOr bool[3]");
  CHECK(made(logical_not(s, b)) == "LogicalNot bool[3]");
  const std::pair<Unary, const char*> unary[] = {{neg, "Neg"},
                                                 {ops::abs, "Abs"},
                                                 {sign, "Sign"},
                                                 {square, "Square"},
                                                 {ops::sqrt, "Sqrt"},
                                                 {rsqrt, "Rsqrt"},
                                                 {reciprocal, "Reciprocal"},
                                                 {ops::exp, "Exp"},
                                                 {ops::expm1, "Expm1"},
                                                 {ops::log, "Log"},
                                                 {ops::log1p, "Log1p"},
                                                 {ops::sin, "Sin"},
                                                 {ops::cos, "Cos"},
                                                 {ops::floor, "Floor"},
                                                 {ops::ceil, "Ceil"},
                                                 {ops::round, "Round"},
                                                 {ops::erf, "Erf"}};
  for (const auto& [function, op] : unary)
    CHECK(made(function(s, matrix)) == fmt::format("{} float[2,3]", op));
  CHECK(made(is_nan(s, v)) == "IsNan bool[3]");
  CHECK(made(is_finite(s, v)) == "IsFinite bool[3]");
  CHECK(made(select(s, b, matrix, 0)) == "SelectV2 float[2,3]");
  CHECK(made(cast(s, i, DataType::kHalf)) == "Cast half[3]");
  CHECK(made(clip_by_value(s, v, 0, 1)) == "ClipByValue float[3]");
  CHECK(made(add_n(s, {v, v, v})) == "AddN float[3]");
}

TEST_CASE_FIXTURE(Fixture, "reductions make their ops") {
  CHECK(made(reduce_sum(s, matrix, 0)) == "Sum float[3]");
  CHECK(made(reduce_sum(s, matrix, {1}, {.keep_dims = true})) ==
        "Sum float[2,1]");
  CHECK(made(reduce_mean(s, matrix)) == "Mean float[]");
  CHECK(made(reduce_prod(s, matrix, {0, 1})) == "Prod float[]");
  CHECK(made(reduce_max(s, matrix, -1)) == "Max float[2]");
  CHECK(made(reduce_min(s, matrix, -1)) == "Min float[2]");
  CHECK(made(reduce_all(s, b)) == "All bool[]");
  CHECK(made(reduce_any(s, b)) == "Any bool[]");
  CHECK(made(arg_max(s, matrix, 0)) == "ArgMax int64[3]");
  CHECK(made(arg_min(s, matrix, 0, {.output_type = DataType::kInt32})) ==
        "ArgMin int32[3]");
  CHECK(made(segment_sum(s, v, i)) == "SegmentSum float[?]");
  CHECK(made(unsorted_segment_sum(s, v, i, 4)) ==
        "UnsortedSegmentSum float[4]");
  // All axes of a tensor of unknown rank are computed.
  const Output any = placeholder(s.named("any"), DataType::kFloat);
  reduce_sum(s.named("total"), any);
  CHECK(s.ok());
  CHECK(dump(graph, "total") == "total = Sum(any, axes_3)");
  CHECK(dump(graph, "axes_3") ==
        "axes_3 = Range(axes/start, Rank, axes/delta)");
}

TEST_CASE_FIXTURE(Fixture, "array functions make their ops") {
  CHECK(made(ops::shape(s, matrix)) == "Shape int32[2]");
  CHECK(made(shape_n(s, {matrix, v}, {.out_type = DataType::kInt64})[1]) ==
        "ShapeN int64[1]");
  CHECK(made(ops::size(s, matrix)) == "Size int32[]");
  CHECK(made(ops::rank(s, matrix)) == "Rank int32[]");
  CHECK(made(reshape(s, matrix, {3, -1})) == "Reshape float[3,2]");
  CHECK(made(expand_dims(s, v, 0)) == "ExpandDims float[1,3]");
  CHECK(made(squeeze(s, expand_dims(s, v, 0), {0})) == "Squeeze float[3]");
  CHECK(made(fill(s, {2, 2}, 1.f)) == "Fill float[2,2]");
  CHECK(made(zeros_like(s, i)) == "ZerosLike int32[3]");
  CHECK(made(ones_like(s, i)) == "OnesLike int32[3]");
  CHECK(made(range(s, 0, 5, 2)) == "Range int32[3]");
  CHECK(made(tile(s, v, {2})) == "Tile float[6]");
  CHECK(made(broadcast_to(s, v, {2, 3})) == "BroadcastTo float[2,3]");
  CHECK(made(broadcast_gradient_args(s, ops::shape(s, matrix), ops::shape(s, v))
                 .r1) == "BroadcastGradientArgs int32[?]");
  CHECK(made(pack(s, {v, v}, 1)) == "Pack float[3,2]");
  CHECK(made(unpack(s, matrix, 2)[1]) == "Unpack float[3]");
  CHECK(made(concat(s, {matrix, matrix}, 1)) == "ConcatV2 float[2,6]");
  CHECK(made(concat_offset(
            s, 0, {ops::shape(s, matrix), ops::shape(s, matrix)})[1]) ==
        "ConcatOffset int32[2]");
  CHECK(made(split(s, 1, matrix, 3)[2]) == "Split float[2,1]");
  CHECK(made(slice(s, matrix, {0, 1}, {2, -1})) == "Slice float[2,2]");
  CHECK(
      made(strided_slice(s, matrix, {0}, {1}, {1}, {.shrink_axis_mask = 1})) ==
      "StridedSlice float[3]");
  CHECK(made(strided_slice_grad(s, {2, 3}, {0}, {1}, {1}, v,
                                {.shrink_axis_mask = 1})) ==
        "StridedSliceGrad float[2,3]");
  CHECK(made(gather(s, matrix, i)) == "GatherV2 float[3,3]");
  CHECK(made(gather_nd(s, matrix, {0, 1})) == "GatherNd float[]");
  CHECK(made(scatter_nd(s, expand_dims(s, i, 1), v, {4})) ==
        "ScatterNd float[4]");
  CHECK(made(dynamic_stitch(s, {i, i}, {v, v}))
            .starts_with("DynamicStitch float"));
  CHECK(made(dynamic_partition(s, v, i, 2)[1]) == "DynamicPartition float[?]");
  CHECK(made(transpose(s, matrix, {1, 0})) == "Transpose float[3,2]");
  CHECK(made(invert_permutation(s, i)) == "InvertPermutation int32[3]");
  CHECK(made(reverse(s, matrix, {0})) == "ReverseV2 float[2,3]");
  CHECK(made(pad(s, matrix,
                 s.constant(Tensor::of<int32_t>({2, 2}, {1, 0, 0, 2})))) ==
        "Pad float[3,5]");
  CHECK(made(one_hot(s, i, 4, 1.f, 0.f)) == "OneHot float[3,4]");
  CHECK(made(ops::where(s, b)) == "Where int64[?,1]");
  CHECK(made(bitcast(s, i, DataType::kFloat)) == "Bitcast float[3]");
}

TEST_CASE_FIXTURE(Fixture, "dense products and activations make their ops") {
  CHECK(made(matmul(s, matrix, matrix, {.transpose_b = true})) ==
        "MatMul float[2,2]");
  CHECK(made(batch_matmul(s, matrix, matrix, {.adj_x = true})) ==
        "BatchMatMulV2 float[3,3]");
  CHECK(made(bias_add(s, matrix, v)) == "BiasAdd float[2,3]");
  using Unary = Output (*)(const Scope&, const Input&);
  const std::pair<Unary, const char*> unary[] = {
      {sigmoid, "Sigmoid"}, {ops::tanh, "Tanh"},
      {relu, "Relu"},       {relu6, "Relu6"},
      {elu, "Elu"},         {softplus, "Softplus"},
      {softmax, "Softmax"}, {log_softmax, "LogSoftmax"}};
  for (const auto& [function, op] : unary)
    CHECK(made(function(s, matrix)) == fmt::format("{} float[2,3]", op));
  CHECK(made(leaky_relu(s, matrix)) == "LeakyRelu float[2,3]");
  CHECK(made(l2_loss(s, matrix)) == "L2Loss float[]");
  CHECK(made(softmax_cross_entropy(s, matrix, matrix).loss) ==
        "SoftmaxCrossEntropyWithLogits float[2]");
  CHECK(made(sparse_softmax_cross_entropy(s, matrix, {0, 1}).backprop) ==
        "SparseSoftmaxCrossEntropyWithLogits float[2,3]");
}

TEST_CASE_FIXTURE(Fixture, "a line to print is a template and tensors") {
  // What is printed, and how it is put together.
  const auto line = [&](const Inputs& values, PrintLineAttrs a = {}) {
    const Output printed = print_line(s, values, a);
    if (!s.ok()) return s.status().to_string();
    const Node& format = *printed.node()->inputs()[0].node;
    std::string text = format.op();
    if (format.op() == "StringFormat")
      text += fmt::format(" {} {} of {}", *format.attr<std::string>("template"),
                          *format.attr<std::string>("placeholder"),
                          format.num_inputs());
    return text;
  };
  CHECK(line({"v is", v, "and i", i}) ==
        "StringFormat v is {} and i {} {} of 2");
  CHECK(line({v, 7}, {.separator = ", "}) == "StringFormat {}, {} {} of 2");
  CHECK(line({"no {} tensor"}) == "StringFormat no {} tensor {_} of 0");
  CHECK(line({"{", "}", v}, {.separator = ""}) ==
        "StringFormat {}{_} {_} of 1");
  CHECK(line({}) == "StringFormat  {} of 0");
  // Alone it needs no quotes.
  const Output text =
      placeholder(s.named("text"), DataType::kString, PartialShape::scalar());
  CHECK(line({text}) == "Placeholder");
  CHECK(line({placeholder(s, DataType::kString, {2})}) ==
        "StringFormat {} {} of 1");
  CHECK(line({text, "!"}) == "StringFormat {} ! {} of 1");
  CHECK(line({Tensor::vector<std::string>({"a", "b"}), "!"}) ==
        "StringFormat {} ! {} of 1");
  const Output printed =
      print_line(s, {v}, {.end = "", .output_stream = "stdout"});
  CHECK(*printed.node()->attr<std::string>("output_stream") == "stdout");
  CHECK(printed.node()->attr<std::string>("end")->empty());
  CHECK(printed.is_operation());
}

TEST_CASE_FIXTURE(Fixture, "sources, identities and primitives") {
  CHECK(made(constant(s, {1, 2})) == "Const int32[2]");
  CHECK(made(constant(s, "text")) == "Const string[]");
  CHECK(made(constant(s, Tensor::scalar(int8_t(3)))) == "Const int8[]");
  CHECK(made(placeholder_with_default(s, v, {-1})) ==
        "PlaceholderWithDefault float[?]");
  CHECK(made(stop_gradient(s, matrix)) == "StopGradient float[2,3]");
  CHECK(made(prevent_gradient(s, matrix)) == "PreventGradient float[2,3]");
  CHECK(made(ensure_shape(s, matrix, {2, 3})) == "EnsureShape float[2,3]");
  CHECK(made(check_numerics(s, matrix, "why")) == "CheckNumerics float[2,3]");
  CHECK(made(print(s, matrix, {v, i}, "m")) == "Print float[2,3]");
  CHECK(assert_(s, true, {v, i}).node()->op() == "Assert");
  CHECK(made(with_dependencies(s, {v, no_op(s)}, matrix)) ==
        "Identity float[2,3]");
  CHECK(made(ops::merge(s, {matrix, matrix, matrix}).value_index) ==
        "Merge int32[]");
  CHECK(made(switch_(s, matrix, true).on_true) == "Switch float[2,3]");
  CHECK(control_trigger(s).is_operation());
}

}  // namespace tagflow::graph
