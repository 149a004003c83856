// Rules of forward mode, for ops that forward tensors, are linear, or have a
// simple derivative. The rules of all others are transposed (Note [Transposed
// rules] in autodiff/transpose.h).
#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "autodiff/forward_rule.h"
#include "autodiff/rule.h"
#include "autodiff/rules/rules.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_math.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// Whether only these inputs have tangents.
bool has_only(const ForwardContext& r, std::span<const int> inputs) {
  for (int i = 0; i < r.num_inputs(); ++i)
    if (r.has_tangent(i) && std::ranges::find(inputs, i) == inputs.end())
      return false;
  return true;
}

// Linear in inputs I together.
template <int... I>
void linear(ForwardContext& r) {
  constexpr std::array inputs{I...};
  if (has_only(r, inputs))
    r.set_linear(inputs);
  else
    r.set_transposed();
}

// Linear in each of inputs I.
template <int... I>
void multilinear(ForwardContext& r) {
  constexpr std::array inputs{I...};
  if (has_only(r, inputs))
    r.set_multilinear(inputs);
  else
    r.set_transposed();
}

// Inputs from `first` on, except the last `but_last`.
std::vector<int> inputs_from(const ForwardContext& r, int first,
                             int but_last = 0) {
  std::vector<int> inputs(size_t(r.num_inputs() - first - but_last));
  std::iota(inputs.begin(), inputs.end(), first);
  return inputs;
}

void hand_on(ForwardContext& r) {
  for (int i = 0; i < r.num_inputs() && i < r.num_outputs(); ++i)
    if (r.has_tangent(i)) r.set(i, r.tangent(i));
}

void hand_on_first(ForwardContext& r) {
  if (r.has_tangent(0)) r.set(0, r.tangent(0));
}

void symmetric(ForwardContext& r) { r.set_symmetric(); }

void add_handing_on(RuleTable& table) {
  table.add_forward(
      {"Identity", "Snapshot", "Print", "EnsureShape", "GuaranteeConst",
       "PlaceholderWithDefault", "ReadVariableOp", "RefIdentity",
       "_Dereference", "DestroyTemporaryVariable"},
      hand_on_first);
  table.add_forward({"IdentityN"}, hand_on);
}

// --- Sums and products ------------------------------------------------------

void sum_of_many(ForwardContext& r) {
  std::vector<Output> parts;
  for (int i = 0; i < r.num_inputs(); ++i)
    if (r.has_tangent(i)) parts.push_back(r.tangent(i));
  r.set(0, parts.size() == 1 ? parts[0] : ops::add_n(r.scope(), parts));
}

void sum_of_two(ForwardContext& r) {
  // A sum of flows of TensorArrays.
  if (r.is_container(0)) return sum_of_many(r);
  if (r.has_tangent(0) && r.has_tangent(1))
    r.set_linear(std::array{0, 1});
  else if (r.has_tangent(0))
    r.set_broadcast(0, r.tangent(0));
  else if (r.node().op() == "Sub")
    r.set_broadcast(1, ops::neg(r.scope(), r.tangent(1)));
  else
    r.set_broadcast(1, r.tangent(1));
}

void bias_sum(ForwardContext& r) {
  if (r.has_tangent(1))
    r.set_linear(std::array{0, 1});
  else
    r.set(0, r.tangent(0));
}

// (dx - (x / y) dy) / y.
void quotient(ForwardContext& r) {
  const Scope& s = r.scope();
  Output numerator;
  if (r.has_tangent(1)) numerator = ops::mul(s, r.output(), r.tangent(1));
  if (!r.has_tangent(0))
    numerator = ops::neg(s, numerator);
  else
    numerator =
        numerator.valid() ? ops::sub(s, r.tangent(0), numerator) : r.tangent(0);
  r.set(0, ops::real_div(s, numerator, r.input(1)));
}

void add_arithmetic(RuleTable& table) {
  table.add_forward({"Add", "AddV2", "Sub"}, sum_of_two);
  table.add_forward({"AddN", "AccumulateNV2"}, sum_of_many);
  table.add_forward({"BiasAdd", "BiasAddV1"}, bias_sum);
  table.add_forward(
      {"Mul", "MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
       "Cross", "Conv2D", "Conv3D", "DepthwiseConv2dNative"},
      multilinear<0, 1>);
  table.add_forward({"Conv2DBackpropInput"}, multilinear<1, 2>);
  table.add_forward({"Conv2DBackpropFilter"}, multilinear<0, 2>);
  table.add_forward({"Einsum"}, [](ForwardContext& r) {
    r.set_multilinear(inputs_from(r, 0));
  });
  table.add_forward({"RealDiv", "Div"}, quotient);
}

// --- Choices ----------------------------------------------------------------

// The tangent of the larger or smaller input, the one that gets the gradient.
void choice_of_two(ForwardContext& r, std::string_view takes_first) {
  const Scope& s = r.scope();
  const Output first = s.op(takes_first, {r.input(0), r.input(1)});
  const auto part = [&](int i) -> graph::Input {
    if (r.has_tangent(i)) return r.tangent(i);
    return 0;
  };
  r.set(0, ops::select(s, first, part(0), part(1)));
}

void add_choices(RuleTable& table) {
  table.add_forward(
      {"Maximum"}, [](ForwardContext& r) { choice_of_two(r, "GreaterEqual"); });
  table.add_forward({"Minimum"},
                    [](ForwardContext& r) { choice_of_two(r, "LessEqual"); });
  table.add_forward({"Select", "SelectV2"}, linear<1, 2>);
}

// --- Functions of one tensor ------------------------------------------------

void add_functions(RuleTable& table) {
  // Element-wise functions have diagonal Jacobians.
  table.add_forward({"Abs",           "Square",
                     "Sqrt",          "Rsqrt",
                     "Reciprocal",    "Inv",
                     "Exp",           "Expm1",
                     "Log",           "Log1p",
                     "Sin",           "Cos",
                     "Tan",           "Asin",
                     "Acos",          "Atan",
                     "Sinh",          "Cosh",
                     "Asinh",         "Acosh",
                     "Atanh",         "Erf",
                     "Erfc",          "Erfinv",
                     "Ndtri",         "Lgamma",
                     "Digamma",       "Sigmoid",
                     "Tanh",          "Relu",
                     "Relu6",         "Elu",
                     "Selu",          "Softplus",
                     "Softsign",      "LeakyRelu",
                     "CheckNumerics", "CheckNumericsV2"},
                    symmetric);
  table.add_forward({"Softmax"}, symmetric);
  table.add_forward({"Neg", "Cast", "Conj", "Real", "Imag"}, linear<0>);
  table.add_forward({"Complex"}, linear<0, 1>);
}

// --- Places of elements -----------------------------------------------------

void add_moves(RuleTable& table) {
  table.add_forward({"Reshape",
                     "ExpandDims",
                     "Squeeze",
                     "BroadcastTo",
                     "Tile",
                     "Transpose",
                     "ConjugateTranspose",
                     "Reverse",
                     "ReverseV2",
                     "ReverseSequence",
                     "Roll",
                     "Slice",
                     "StridedSlice",
                     "Gather",
                     "GatherV2",
                     "GatherNd",
                     "Pad",
                     "MirrorPad",
                     "Diag",
                     "DiagPart",
                     "MatrixDiag",
                     "BatchMatrixDiag",
                     "MatrixDiagPart",
                     "BatchMatrixDiagPart",
                     "MatrixBandPart",
                     "BatchMatrixBandPart",
                     "SpaceToDepth",
                     "DepthToSpace",
                     "SpaceToBatchND",
                     "BatchToSpaceND",
                     "SplitV",
                     "Unpack"},
                    linear<0>);
  table.add_forward({"Fill", "Split"}, linear<1>);
  table.add_forward({"StridedSliceGrad"}, linear<4>);
  table.add_forward({"Pack"},
                    [](ForwardContext& r) { r.set_linear(inputs_from(r, 0)); });
  table.add_forward({"Concat"},
                    [](ForwardContext& r) { r.set_linear(inputs_from(r, 1)); });
  table.add_forward({"ConcatV2"}, [](ForwardContext& r) {
    r.set_linear(inputs_from(r, 0, 1));
  });
}

void add_reductions(RuleTable& table) {
  table.add_forward({"Sum", "Mean", "Cumsum", "SegmentSum", "SegmentMean",
                     "UnsortedSegmentSum", "AvgPool", "AvgPool3D"},
                    linear<0>);
}

}  // namespace

void add_forward_rules(RuleTable& table) {
  add_handing_on(table);
  add_arithmetic(table);
  add_choices(table);
  add_functions(table);
  add_moves(table);
  add_reductions(table);
  add_recurrent_forward_rules(table);
}

}  // namespace tagflow::autodiff
