#include "graph/placement/op_work.h"

#include <algorithm>
#include <cmath>

namespace tagflow::graph {
namespace {

enum class Family : uint8_t {
  kElementwise,     // one operation for each element
  kTranscendental,  // exp, tanh, ...: many for each element
  kNoData,          // looks at shapes or handles only
  kMove,            // copies what it reads
  kPick,            // copies a part of what it reads
  kReduce,          // one operation for each element of its first input
  kSort,            // log n for each element of its first input
  kProduct,         // of matrices
  kConvolution,
  kDepthwise,  // a convolution of each channel alone
  kWindow,     // pooling
};

// Operations for an element of a transcendental function.
constexpr double kTranscendentalFlops = 20;
// Of a pooling window whose size is an input.
constexpr double kAssumedWindow = 4;

// Ops that are not element-wise.
const std::unordered_map<std::string_view, Family>& families() {
  static const auto* const kTable = [] {
    auto* made = new std::unordered_map<std::string_view, Family>;
    const auto add = [&](Family family,
                         std::initializer_list<std::string_view> ops) {
      for (const std::string_view op : ops) made->emplace(op, family);
    };
    add(Family::kTranscendental, {"Acos",
                                  "Acosh",
                                  "Asin",
                                  "Asinh",
                                  "Atan",
                                  "Atan2",
                                  "Atanh",
                                  "Cos",
                                  "Cosh",
                                  "Digamma",
                                  "Elu",
                                  "Erf",
                                  "Erfc",
                                  "Erfinv",
                                  "Exp",
                                  "Expm1",
                                  "Lgamma",
                                  "Log",
                                  "Log1p",
                                  "Ndtri",
                                  "Pow",
                                  "Selu",
                                  "Sigmoid",
                                  "Sin",
                                  "Sinh",
                                  "Softmax",
                                  "Softplus",
                                  "LogSoftmax",
                                  "Tan",
                                  "Tanh",
                                  "Xlog1py",
                                  "Xlogy",
                                  "SoftmaxCrossEntropyWithLogits",
                                  "SparseSoftmaxCrossEntropyWithLogits",
                                  "CumulativeLogsumexp",
                                  "FusedBatchNorm",
                                  "FusedBatchNormV2",
                                  "FusedBatchNormV3",
                                  "FusedBatchNormGrad",
                                  "FusedBatchNormGradV2",
                                  "FusedBatchNormGradV3",
                                  "LRN",
                                  "LRNGrad",
                                  "ResizeBilinear",
                                  "ResizeBilinearGrad"});
    add(Family::kNoData, {"Assert",
                          "BroadcastArgs",
                          "BroadcastGradientArgs",
                          "ConcatOffset",
                          "DeviceIndex",
                          "EmptyTensorList",
                          "EnsureShape",
                          "ExpandDims",
                          "GradientListAdd",
                          "GradientListDrop",
                          "GradientListGet",
                          "GradientListPut",
                          "GradientListTake",
                          "OptionalFromValue",
                          "OptionalGetValue",
                          "OptionalHasValue",
                          "OptionalNone",
                          "PersistentStack",
                          "PersistentStackDrop",
                          "PersistentStackPop",
                          "PersistentStackPopOrZero",
                          "PersistentStackPush",
                          "PersistentStackPushZero",
                          "PersistentStackSize",
                          "Rank",
                          "Reshape",
                          "Shape",
                          "ShapeN",
                          "Size",
                          "Squeeze",
                          "Stack",
                          "StackClose",
                          "StackCloseV2",
                          "StackPop",
                          "StackPopV2",
                          "StackPush",
                          "StackPushV2",
                          "StackV2",
                          "TensorArrayCloseV3",
                          "TensorArrayGradV3",
                          "TensorArrayGradWithShape",
                          "TensorArrayReadV3",
                          "TensorArraySizeV3",
                          "TensorArrayV3",
                          "TensorArrayWriteV3",
                          "TensorListElementShape",
                          "TensorListGetItem",
                          "TensorListLength",
                          "TensorListLengths",
                          "TensorListPopBack",
                          "TensorListPushBack",
                          "TensorListReserve",
                          "TensorListResize",
                          "TensorListSetItem",
                          "ZeroVariant",
                          "_ForTripCount"});
    add(Family::kMove, {"BatchToSpace",
                        "BatchToSpaceND",
                        "Bitcast",
                        "BroadcastTo",
                        "Concat",
                        "ConcatV2",
                        "ConjugateTranspose",
                        "DepthToSpace",
                        "Diag",
                        "DiagPart",
                        "DynamicPartition",
                        "DynamicStitch",
                        "Fill",
                        "GradientListAddRows",
                        "GradientListAddSplit",
                        "GradientListGetConcat",
                        "GradientListGetRows",
                        "GradientListPutRows",
                        "GradientListJoin",
                        "GradientListPutBatch",
                        "GradientListSplit",
                        "GradientListTakeBatch",
                        "GradientListTakeRows",
                        "MatrixBandPart",
                        "MatrixDiag",
                        "MirrorPad",
                        "OneHot",
                        "OnesLike",
                        "Pack",
                        "Pad",
                        "PadV2",
                        "ParallelDynamicStitch",
                        "Reverse",
                        "ReverseSequence",
                        "ReverseV2",
                        "Roll",
                        "ScatterNd",
                        "SpaceToBatch",
                        "SpaceToBatchND",
                        "SpaceToDepth",
                        "StridedSliceGrad",
                        "TensorArrayConcatV3",
                        "TensorArrayGatherV3",
                        "TensorArrayScatterV3",
                        "TensorArraySplitV3",
                        "TensorListConcat",
                        "TensorListConcatV2",
                        "TensorListFromTensor",
                        "TensorListGather",
                        "TensorListStack",
                        "Tile",
                        "Transpose",
                        "ZerosLike"});
    add(Family::kPick,
        {"Gather", "GatherNd", "GatherV2", "Slice", "Split", "SplitV",
         "StridedSlice", "Unpack", "ResizeNearestNeighbor"});
    add(Family::kReduce, {"All",
                          "Any",
                          "ArgMax",
                          "ArgMin",
                          "BiasAddGrad",
                          "Bincount",
                          "DenseBincount",
                          "EuclideanNorm",
                          "HistogramFixedWidth",
                          "L2Loss",
                          "Max",
                          "Mean",
                          "Min",
                          "Prod",
                          "Sum",
                          "SegmentMax",
                          "SegmentMean",
                          "SegmentMin",
                          "SegmentProd",
                          "SegmentSum",
                          "UnsortedSegmentMax",
                          "UnsortedSegmentMin",
                          "UnsortedSegmentProd",
                          "UnsortedSegmentSum",
                          "Where"});
    add(Family::kSort, {"ListDiff", "TopK", "TopKV2", "Unique", "UniqueV2",
                        "UniqueWithCounts", "UniqueWithCountsV2", "InTopK",
                        "InTopKV2", "LowerBound", "UpperBound"});
    add(Family::kProduct, {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
                           "Einsum", "MatMul", "_PackedMatMul"});
    add(Family::kConvolution,
        {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D",
         "Conv3DBackpropFilterV2", "Conv3DBackpropInputV2"});
    add(Family::kDepthwise,
        {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropFilter",
         "DepthwiseConv2dNativeBackpropInput"});
    add(Family::kWindow,
        {"AvgPool", "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "MaxPool",
         "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPoolGrad",
         "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPoolGradGradWithArgmax",
         "MaxPoolGradV2", "MaxPoolGradWithArgmax", "MaxPoolV2",
         "MaxPoolWithArgmax"});
    return made;
  }();
  return *kTable;
}

Family family_of(const Node& node) {
  const auto it = families().find(node.op());
  return it == families().end() ? Family::kElementwise : it->second;
}

double input_elements(const Node& node, size_t i) {
  if (i >= node.inputs().size()) return 0;
  const Endpoint& input = node.inputs()[i];
  return assumed_elements(input.node->output_shape(input.port));
}

double most_output_elements(const Node& node) {
  double most = 0;
  for (int port = 0; port < node.num_outputs(); ++port)
    most = std::max(most, assumed_elements(node.output_shape(port)));
  return most;
}

// Of the shape's last dimensions, assumed where unknown.
double last_elements(const PartialShape& shape, int dims) {
  if (!shape.has_rank() || shape.rank() < dims)
    return std::pow(double(CostModel::kAssumedDimension), dims);
  return assumed_elements(PartialShape(shape.dims().last(size_t(dims))));
}

// For a of m x k and b of k x n, m n k is the root of what all three have; of a
// batch of them, that times the root of their number.
double product_flops(const Node& node) {
  if (const auto weights = node.attr<PartialShape>("weights");
      node.op() == "_PackedMatMul" && weights.ok() && weights->has_rank() &&
      weights->rank() == 2)
    return 2 * input_elements(node, 0) *
           double(weights->dim(*node.attr<bool>("transpose_b") ? 0 : 1));
  double batch = 1;
  if (node.op() != "Einsum" && node.output_shape(0).has_rank())
    batch = assumed_elements(node.output_shape(0)) /
            std::max(1.0, last_elements(node.output_shape(0), 2));
  return 2 * std::sqrt(input_elements(node, 0) * input_elements(node, 1) *
                       most_output_elements(node) / std::max(1.0, batch));
}

// Each element on the output's side meets the filter of its channel once.
double convolution_flops(const Node& node, int channel_dims) {
  const bool to_filter = node.op().find("BackpropFilter") != std::string::npos;
  const bool is_forward = node.op().find("Backprop") == std::string::npos;
  if (node.inputs().size() < (is_forward ? 2 : 3)) return 0;
  const Endpoint& filter = node.inputs()[1];
  const PartialShape& shape =
      to_filter ? node.output_shape(0) : filter.node->output_shape(filter.port);
  const double elements =
      is_forward ? most_output_elements(node) : input_elements(node, 2);
  return 2 * elements * assumed_elements(shape) /
         std::max(1.0, last_elements(shape, channel_dims));
}

double window_flops(const Node& node) {
  double window = kAssumedWindow;
  if (const auto size = node.attr<std::vector<int64_t>>("ksize"); size.ok()) {
    window = 1;
    for (const int64_t dim : *size) window *= double(std::max<int64_t>(dim, 1));
  }
  // Of the smaller side of the two: the other has the windows' elements.
  return window * std::min(most_output_elements(node), input_elements(node, 0));
}

}  // namespace

bool is_free_op(const Node& node) {
  if (node.is_switch() || node.is_merge() || node.is_enter() ||
      node.is_exit() || node.is_next_iteration() || node.is_loop_cond() ||
      node.is_control_trigger() || node.is_const() || node.is_identity())
    return true;
  static constexpr std::string_view kFree[] = {
      "FakeParam",
      "GuaranteeConst",
      "IdentityN",
      "NoOp",
      "Placeholder",
      "PlaceholderV2",
      "Snapshot",
      "PreventGradient",
      "PlaceholderWithDefault",
      "StopGradient",
      "_Arg",
      "_Call",
      "_Retval",
      "_SwitchN",
  };
  return std::ranges::find(kFree, node.op()) != std::end(kFree);
}

bool only_holds(const Node& node) {
  const auto is_container = [](DataType type) {
    return type == DataType::kVariant || type == DataType::kResource;
  };
  return family_of(node) == Family::kNoData &&
         (std::ranges::any_of(node.input_dtypes(), is_container) ||
          std::ranges::any_of(node.output_dtypes(), is_container));
}

double assumed_elements(const PartialShape& shape) {
  if (!shape.has_rank()) return double(CostModel::kAssumedElements);
  double elements = 1;
  for (const int64_t dim : shape.dims())
    elements *= double(
        dim == PartialShape::kUnknown ? CostModel::kAssumedDimension : dim);
  // No memory has more, and sums of such times are still numbers.
  constexpr double kMost = 1e15;
  return std::min(elements, kMost);
}

double estimate_flops(const Node& node, double output_bytes, double& bytes) {
  switch (family_of(node)) {
    case Family::kNoData:
      bytes = 0;
      return 0;
    case Family::kMove:
      return 0;
    case Family::kPick:
      bytes = 2 * output_bytes;
      return 0;
    case Family::kReduce:
      return input_elements(node, 0);
    case Family::kSort:
      return input_elements(node, 0) * std::log2(2 + input_elements(node, 0));
    case Family::kProduct:
      return product_flops(node);
    case Family::kConvolution:
      return convolution_flops(node, 1);
    case Family::kDepthwise:
      return convolution_flops(node, 2);
    case Family::kWindow:
      return window_flops(node);
    case Family::kTranscendental:
      return kTranscendentalFlops *
             std::max(input_elements(node, 0), most_output_elements(node));
    case Family::kElementwise:
      break;
  }
  double operations = 1;
  if (node.op() == "AddN") operations = double(node.num_inputs());
  if (const auto program = node.attr<std::vector<std::string>>("program");
      node.op() == "_FusedElementwise" && program.ok())
    operations = double(program->size());
  return operations * most_output_elements(node);
}

}  // namespace tagflow::graph
