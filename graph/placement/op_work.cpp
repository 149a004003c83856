#include "graph/placement/op_work.h"

#include <algorithm>
#include <cmath>

namespace tagflow::graph {
namespace {

// Operations per element of a transcendental function.
constexpr double kTranscendentalFlops = 20;
// For a pooling window whose size is an input.
constexpr double kAssumedWindow = 4;

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

// Number of elements in the last dimensions; unknown ones are assumed.
double last_elements(const PartialShape& shape, int dims) {
  if (!shape.has_rank() || shape.rank() < dims)
    return std::pow(double(CostModel::kAssumedDimension), dims);
  return assumed_elements(PartialShape(shape.dims().last(size_t(dims))));
}

// For a of m x k and b of k x n, m n k is the square root of the product of all
// three element counts; for a batch of them, multiplied by the square root of
// its size.
double product_flops(const Node& node) {
  if (node.num_outputs() == 0) return 0;
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

// Each output element meets the filter of its channel once.
double convolution_flops(const Node& node, int channel_dims) {
  const bool to_filter = node.op().find("BackpropFilter") != std::string::npos;
  const bool is_forward = node.op().find("Backprop") == std::string::npos;
  if (node.inputs().size() < (is_forward ? 2 : 3) || node.num_outputs() == 0)
    return 0;
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
  // Uses the smaller of the two sides: the other has the windows' elements.
  return window * std::min(most_output_elements(node), input_elements(node, 0));
}

}  // namespace

bool only_holds(const Node& node) {
  const auto is_container = [](DataType type) {
    return type == DataType::kVariant || type == DataType::kResource;
  };
  return node.op_def().work == Work::kNoData &&
         (std::ranges::any_of(node.input_dtypes(), is_container) ||
          std::ranges::any_of(node.output_dtypes(), is_container));
}

double assumed_elements(const PartialShape& shape) {
  if (!shape.has_rank()) return double(CostModel::kAssumedElements);
  double elements = 1;
  for (const int64_t dim : shape.dims())
    elements *= double(
        dim == PartialShape::kUnknown ? CostModel::kAssumedDimension : dim);
  // No memory is larger, and sums of such times stay finite.
  constexpr double kMost = 1e15;
  return std::min(elements, kMost);
}

double estimate_flops(const Node& node, double output_bytes, double& bytes) {
  switch (node.op_def().work) {
    case Work::kFree:
    case Work::kNoData:
      bytes = 0;
      return 0;
    case Work::kMove:
      return 0;
    case Work::kPick:
      bytes = 2 * output_bytes;
      return 0;
    case Work::kReduce:
      return input_elements(node, 0);
    case Work::kSort:
      return input_elements(node, 0) * std::log2(2 + input_elements(node, 0));
    case Work::kProduct:
      return product_flops(node);
    case Work::kConvolution:
      return convolution_flops(node, 1);
    case Work::kDepthwise:
      return convolution_flops(node, 2);
    case Work::kWindow:
      return window_flops(node);
    case Work::kTranscendental:
      return kTranscendentalFlops *
             std::max(input_elements(node, 0), most_output_elements(node));
    case Work::kElementwise:
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
