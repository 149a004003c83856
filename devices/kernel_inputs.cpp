#include "devices/kernel_inputs.h"

#include <algorithm>
#include <limits>

namespace tagflow::devices {

namespace {

// Below this size a kernel is cheap for any operation on its bytes.
constexpr int64_t kSmallBytes = 1 << 14;

// Whether the bytes of a tensor of this type and shape are known, and few. A
// string may be of any length.
bool known_small(DataType dtype, const PartialShape& shape) {
  if (remove_ref(dtype) == DataType::kString) return false;
  const int64_t count = shape.has_rank() ? shape.num_elements() : -1;
  return count >= 0 &&
         count <= kSmallBytes / int64_t(dtype_size(remove_ref(dtype)) + 1);
}

bool all_small(const graph::Node& node, BytesKernel::Work work) {
  if (work == BytesKernel::Work::kOutputs) {
    for (int i = 0; i < node.num_outputs(); ++i)
      if (!known_small(node.output_dtypes()[size_t(i)], node.output_shape(i)))
        return false;
    return true;
  }
  for (const graph::Endpoint& input : node.inputs())
    if (input.node == nullptr ||
        !known_small(input.node->output_dtypes()[size_t(input.port)],
                     input.node->output_shape(input.port)))
      return false;
  return true;
}

// The bytes of long texts among `bytes` of objects that a kernel handles. Of
// many input strings it looks at about as many as are handled.
double text_bytes(const KernelContext& context, double bytes) {
  size_t objects = 0, text = 0;
  for (const Tensor& input : context.inputs()) {
    if (input.dtype() != DataType::kString) continue;
    const auto strings = input.flat<std::string>();
    const double all = double(strings.size_bytes());
    const size_t stride =
        all <= bytes ? 1 : 1 + size_t(all / std::max(bytes, 1.0) / 2);
    for (size_t i = 0; i < strings.size(); i += stride) {
      objects += sizeof(std::string);
      text += strings[i].size();
    }
  }
  // The cost of short texts is that of their objects.
  return text <= objects ? 0 : bytes * double(text) / double(objects);
}

}  // namespace

Result<int64_t> index_scalar(const KernelContext& context, int input,
                             std::string_view name) {
  const Tensor& tensor = context.input(input);
  if (tensor.num_elements() != 1)
    return context.fail("{} must be a scalar, got {}", name, tensor.describe());
  return index_at(tensor, 0);
}

Status index_vector(const KernelContext& context, int input,
                    std::string_view name, Shape::Dims& values) {
  const Tensor& tensor = context.input(input);
  if (tensor.rank() != 1)
    return context.fail("{} must be a vector, got {}", name, tensor.describe());
  values = index_elements(tensor);
  return {};
}

Status shape_vector(const KernelContext& context, int input,
                    std::string_view name, Shape::Dims& values) {
  if (context.input(input).is_scalar()) {
    values = {index_at(context.input(input), 0)};
    return {};
  }
  return index_vector(context, input, name, values);
}

Status store_index(const KernelContext& context, Tensor& tensor, int64_t i,
                   int64_t value) {
  if (tensor.dtype() == DataType::kInt64) {
    tensor.mutable_data<int64_t>()[i] = value;
    return {};
  }
  if (value > std::numeric_limits<int32_t>::max())
    return context.fail("{} does not fit into the output type int32", value);
  tensor.mutable_data<int32_t>()[i] = int32_t(value);
  return {};
}

Result<int> checked_axis(const KernelContext& context, int64_t axis, int rank,
                         std::string_view name) {
  if (axis < -rank || axis >= rank)
    return context.fail("{} {} is outside [{}, {})", name, axis, -rank, rank);
  return int(axis < 0 ? axis + rank : axis);
}

BytesKernel::BytesKernel(const KernelInfo& info, Work work,
                         double nanoseconds_per_byte)
    : nanoseconds_per_byte_(nanoseconds_per_byte),
      may_be_expensive_(!all_small(info.node(), work)) {}

double BytesKernel::cost(const KernelContext& context) const {
  constexpr double kNanosecondsPerTextByte = 0.3;
  const double bytes = work_bytes(context);
  const double cost = 100 + nanoseconds_per_byte_ * bytes;
  // Enough for any decision, or not a number.
  if (!(cost <= kMostFoldedNanoseconds)) return cost;
  return cost + kNanosecondsPerTextByte * text_bytes(context, bytes);
}

double BytesKernel::work_bytes(const KernelContext& context) const {
  double bytes = 0;
  for (const Tensor& input : context.inputs()) bytes += double(input.bytes());
  return bytes;
}

}  // namespace tagflow::devices
