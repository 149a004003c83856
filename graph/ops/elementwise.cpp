// Definitions of the element-wise ops.
#include "graph/op_registry.h"
#include "graph/ops/elementwise_shapes.h"
#include "graph/ops/type_sets.h"
#include "graph/shape_context.h"

namespace tagflow::graph {

namespace {

// y = f(x).
OpDefBuilder unary(const char* name, const char* types,
                   const char* output = "y: T") {
  return OpDefBuilder(name)
      .input("x: T")
      .output(output)
      .attr(type_set(types))
      .shape(unchanged_shape);
}

// z = f(x, y), broadcast.
OpDefBuilder binary(const char* name, const char* types,
                    const char* output = "z: T") {
  return OpDefBuilder(name)
      .inputs({"x: T", "y: T"})
      .output(output)
      .attr(type_set(types))
      .shape(broadcast_shape);
}

void register_unary(OpRegistry& registry) {
  for (const char* name : {"Sqrt", "Rsqrt"})
    registry.add(unary(name, kInexact).fusible());
  for (const char* name : {"Exp", "Log", "Log1p", "Expm1", "Sigmoid", "Tanh"})
    registry.add(unary(name, kInexact).fusible().work(Work::kTranscendental));
  for (const char* name : {"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh",
                           "Cosh", "Asinh", "Acosh", "Atanh"})
    registry.add(unary(name, kInexact).work(Work::kTranscendental));
  for (const char* name : {"Floor", "Ceil", "Rint"})
    registry.add(unary(name, kFloating).fusible());
  for (const char* name : {"Neg", "Sign", "Reciprocal", "Inv", "Round"})
    registry.add(unary(name, kSigned).fusible());
  registry.add(unary("Abs", kSignedReal).fusible());
  registry.add(unary("Square", kNumber).fusible());
  registry.add(unary("Invert", kInteger));
  for (const char* name : {"IsNan", "IsInf", "IsFinite"})
    registry.add(unary(name, kFloating, "y: bool"));
  registry.add(OpDefBuilder("LogicalNot")
                   .input("x: bool")
                   .output("y: bool")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("Softsign")
                   .input("features: T")
                   .output("activations: T")
                   .attr(type_set(kFloating))
                   .fusible()
                   .shape(unchanged_shape));
  registry.add(unary("PopulationCount", kInteger, "y: uint8"));
}

Status declared_sum_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(same_shape(c));
  TAGFLOW_ASSIGN(const auto declared, c.attr<PartialShape>("shape"));
  auto merged = declared.merge(c.outputs()[0]);
  if (!merged.ok())
    return c.fail(fmt::format("the inputs are of shape {}, not {}",
                              c.outputs()[0].to_string(),
                              declared.to_string()));
  c.set_output(0, *std::move(merged));
  return {};
}

void register_arithmetic(OpRegistry& registry) {
  registry.add(binary("AddV2", kNumber).commutative().fusible());
  registry.add(binary("Add",
                      "bfloat16, half, float, double, uint8, int8, int16, "
                      "int32, int64, complex64, complex128, string")
                   .fusible());
  registry.add(binary("Mul", kNumber).commutative().fusible());
  for (const char* name : {"Sub", "RealDiv", "Div"})
    registry.add(binary(name, kNumber).fusible());
  for (const char* name : {"FloorDiv", "TruncateDiv"})
    registry.add(binary(name, kNumber));
  registry.add(binary("FloorMod", kReal));
  registry.add(binary("Mod", kModulo));
  registry.add(binary("TruncateMod", kModulo));
  registry.add(binary("Pow", kSigned).work(Work::kTranscendental));
  registry.add(binary("Maximum", kReal).commutative().fusible());
  registry.add(binary("Minimum", kReal).commutative().fusible());
  registry.add(binary("SquaredDifference",
                      "bfloat16, half, float, double, int32, int64, complex64, "
                      "complex128")
                   .commutative()
                   .fusible());
  for (const char* name : {"DivNoNan", "MulNoNan", "Xdivy"})
    registry.add(binary(name, kInexact));
  for (const char* name : {"Xlogy", "Xlog1py"})
    registry.add(binary(name, kInexact).work(Work::kTranscendental));
  registry.add(OpDefBuilder("Atan2")
                   .inputs({"y: T", "x: T"})
                   .output("z: T")
                   .attr(type_set(kFloating))
                   .shape(broadcast_shape)
                   .work(Work::kTranscendental));
  registry.add(OpDefBuilder("NextAfter")
                   .inputs({"x1: T", "x2: T"})
                   .output("output: T")
                   .attr("T: {double, float} = float")
                   .shape(broadcast_shape));
  for (const char* name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"})
    registry.add(binary(name, kInteger).commutative());
  for (const char* name : {"LeftShift", "RightShift"})
    registry.add(binary(name, kInteger));
  registry.add(
      OpDefBuilder("AddN")
          .input("inputs: N * T")
          .output("sum: T")
          .attrs({"N: int >= 1", fmt::format("T: {{{}, variant}}", kNumber)})
          .commutative()
          .shape(sum_shape));
  registry.add(OpDefBuilder("AccumulateNV2")
                   .input("inputs: N * T")
                   .output("sum: T")
                   .attrs({"N: int >= 1", "T: numbertype", "shape: shape"})
                   .commutative()
                   .shape(declared_sum_shape));
}

void register_comparisons(OpRegistry& registry) {
  for (const char* name : {"Less", "LessEqual", "Greater", "GreaterEqual"})
    registry.add(binary(name, kReal, "z: bool"));
  for (const char* name : {"Equal", "NotEqual"})
    registry.add(
        OpDefBuilder(name)
            .inputs({"x: T", "y: T"})
            .output("z: bool")
            .attrs({"T: type", "incompatible_shape_error: bool = true"})
            .commutative()
            .shape(equality_shape));
  registry.add(binary("ApproximateEqual", kNumber, "z: bool")
                   .attr("tolerance: float = 1e-5")
                   .commutative()
                   .shape(same_shape));
  for (const char* name : {"LogicalAnd", "LogicalOr"})
    registry.add(OpDefBuilder(name)
                     .inputs({"x: bool", "y: bool"})
                     .output("z: bool")
                     .commutative()
                     .shape(broadcast_shape));
}

void register_complex(OpRegistry& registry) {
  // The parts of a complex number, by the names of their ports.
  const auto part = [](const char* name, const char* input,
                       const char* output) {
    return OpDefBuilder(name)
        .input(fmt::format("{}: T", input))
        .output(fmt::format("{}: Tout", output))
        .attrs({"T: {complex64, complex128} = complex64",
                "Tout: {float, double} = float"})
        .shape(unchanged_shape);
  };
  registry.add(part("Real", "input", "output"));
  registry.add(part("Imag", "input", "output"));
  registry.add(part("Angle", "input", "output"));
  registry.add(part("ComplexAbs", "x", "y"));
  registry.add(OpDefBuilder("Conj")
                   .input("input: T")
                   .output("output: T")
                   .attr("T: {complex64, complex128, variant} = complex64")
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("Complex")
                   .inputs({"real: T", "imag: T"})
                   .output("out: Tout")
                   .attrs({"T: {float, double} = float",
                           "Tout: {complex64, complex128} = complex64"})
                   .shape(broadcast_shape));
}

void register_selection(OpRegistry& registry) {
  const auto select = [](const char* name) {
    return OpDefBuilder(name)
        .inputs({"condition: bool", "t: T", "e: T"})
        .output("output: T")
        .attr("T: type");
  };
  registry.add(select("Select").shape(select_shape));
  registry.add(select("SelectV2").shape(select_v2_shape));
  registry.add(OpDefBuilder("ClipByValue")
                   .inputs({"t: T", "clip_value_min: T", "clip_value_max: T"})
                   .output("output: T")
                   .attr("T: numbertype")
                   .shape(clip_shape));
}

void register_conversions(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("Cast")
          .input("x: SrcT")
          .output("y: DstT")
          .attrs({"SrcT: type", "DstT: type", "Truncate: bool = false"})
          .shape(unchanged_shape));
  const auto types =
      fmt::format("{{{}, qint8, quint8, qint16, quint16, qint32}}", kNumber);
  registry.add(OpDefBuilder("Bitcast")
                   .input("input: T")
                   .output("output: type")
                   .attrs({"T: " + types, "type: " + types})
                   .shape(bitcast_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("ToBool")
                   .input("input: T")
                   .output("output: bool")
                   .attr("T: type")
                   .shape(scalar_shape));
  registry.add(OpDefBuilder("BroadcastTo")
                   .inputs({"input: T", "shape: Tidx"})
                   .output("output: T")
                   .attrs({"T: type", "Tidx: {int32, int64} = int32"})
                   .shape(broadcast_to_shape)
                   .work(Work::kMove));
  registry.add(OpDefBuilder("BroadcastGradientArgs")
                   .inputs({"s0: T", "s1: T"})
                   .outputs({"r0: T", "r1: T"})
                   .attr("T: {int32, int64} = int32")
                   .shape(broadcast_gradient_args_shape)
                   .work(Work::kNoData));
}

void register_fused(OpRegistry& registry) {
  // `program` lists element-wise ops in topological order, each "Op a" or
  // "Op a b": the numbers count the inputs and then the previous results.
  // `outputs` are the numbers of results, each once; if it is empty, the last
  // one is the output. If `joined` is not empty, it has an output number for
  // each of them: results with the same number are concatenated along the last
  // dimension, in this order. Errors are the same as for the single ops in
  // sequence. `names` are the names of their nodes, for messages. If `columns`
  // is not empty, it has two numbers for each input, a first column and a
  // count: the ops read that many columns of the input's last dimension from
  // the first one on, or all of them if the count is 0.
  registry.add(
      OpDefBuilder("_FusedElementwise")
          .input("inputs: N * T")
          .output("output: M * T")
          .attrs({"N: int >= 1", "M: int >= 1 = 1", "outputs: list(int) = []",
                  "joined: list(int) = []",
                  "T: {half, bfloat16, float, double}",
                  "program: list(string) >= 1", "names: list(string) >= 1",
                  "columns: list(int) = []"}));
}

}  // namespace

void register_elementwise_ops(OpRegistry& registry) {
  register_unary(registry);
  register_arithmetic(registry);
  register_comparisons(registry);
  register_complex(registry);
  register_selection(registry);
  register_conversions(registry);
  register_fused(registry);
}

}  // namespace tagflow::graph
