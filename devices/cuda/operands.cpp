#include "devices/cuda/operands.h"

#include <cstring>

#include "devices/broadcast.h"
#include "devices/device.h"

namespace tagflow::devices {

std::optional<cuda::Element> element_of(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return cuda::Element::kFloat;
    case DataType::kDouble:
      return cuda::Element::kDouble;
    case DataType::kHalf:
      return cuda::Element::kHalf;
    case DataType::kBFloat16:
      return cuda::Element::kBFloat16;
    case DataType::kInt32:
      return cuda::Element::kInt32;
    case DataType::kInt64:
      return cuda::Element::kInt64;
    case DataType::kBool:
      return cuda::Element::kBool;
    case DataType::kInt8:
      return cuda::Element::kInt8;
    case DataType::kUInt8:
      return cuda::Element::kUInt8;
    default:
      return std::nullopt;
  }
}

bool fits_operand(const Tensor& tensor) {
  return host_readable(tensor) && is_plain(tensor.dtype()) &&
         tensor.bytes() <= cuda::Operand::kValueBytes;
}

cuda::Operand operand_of(const Tensor& tensor) {
  cuda::Operand operand;
  if (!host_readable(tensor)) {
    operand.data = tensor.raw();
  } else {
    std::memcpy(operand.value, tensor.raw(), tensor.bytes());
  }
  return operand;
}

Result<cuda::ElementwiseArgs> broadcast_args(
    const KernelContext& context, const Shape& result,
    std::initializer_list<const Shape*> operands) {
  const BroadcastPlan plan(result, operands);
  cuda::ElementwiseArgs args;
  args.total = result.num_elements();
  const auto& loops = plan.loops();
  if (loops.size() >= size_t(cuda::kMaxLoops))
    return error(Code::kUnimplemented,
                 "[{}] broadcasting to {} takes {} nested loops, a GPU's "
                 "kernels support {}",
                 context.node().op(), result.to_string(), loops.size() + 1,
                 cuda::kMaxLoops);
  if (!loops.empty()) args.loops = int(loops.size()) + 1;
  // The plan has its outer loops from the innermost on; ours end with it.
  const size_t row = loops.size();
  args.counts[row] = plan.row_size();
  for (size_t k = 0; k < operands.size(); ++k)
    args.strides[k][row] = plan.moves(k) ? 1 : 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    const size_t at = loops.size() - 1 - i;
    args.counts[at] = loops[i].count;
    for (size_t k = 0; k < operands.size(); ++k)
      args.strides[k][at] = loops[i].strides[k];
  }
  return args;
}

}  // namespace tagflow::devices
