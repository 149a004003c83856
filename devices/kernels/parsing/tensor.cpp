// ParseTensor, SerializeTensor: tensors as TensorProtos in strings.
#include <limits>
#include <string>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/string_writer.h"
#include "graph/file/tensor_proto.h"
#include "graph/proto/tensor.pb.h"

namespace tagflow::devices {

namespace {

constexpr int64_t kMostMessageBytes = std::numeric_limits<int32_t>::max();

class ParseTensorKernel final : public BytesKernel {
 public:
  explicit ParseTensorKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (!input.is_scalar())
      return context.fail("serialized must be a scalar, not {}",
                          input.describe());
    const auto& bytes = input.scalar_value<std::string>();
    tensorflow::TensorProto proto;
    if (int64_t(bytes.size()) > kMostMessageBytes ||
        !proto.ParseFromString(bytes))
      return context.fail("{} bytes are not a TensorProto", bytes.size());
    // A value takes at most so much memory for each of its bytes. One value may
    // stand for many, up to a limit.
    constexpr int64_t kMostPerByte = 64, kMostRepeated = int64_t(1) << 30;
    int64_t repeated = kMostRepeated;
    int64_t budget = kMostPerByte * int64_t(bytes.size()) + kMostRepeated;
    auto read = graph::tensor_from_proto(proto, &budget, &repeated);
    if (!read.ok() && read.status().code() == Code::kResourceExhausted)
      return read.status().with_prefix("[ParseTensor] ");
    if (!read.ok())
      return context.fail("the TensorProto has no tensor: {}",
                          read.status().message());
    const DataType wanted = context.node().output_dtypes()[0];
    if (read->dtype() != wanted)
      return context.fail("the tensor is {}, not of {}", read->describe(),
                          dtype_name(wanted));
    // It counts where outputs do.
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, read->shape()));
    copy_elements(*read, 0, *output, 0, output->num_elements());
    return {};
  }
};

class SerializeTensorKernel final : public BytesKernel {
 public:
  explicit SerializeTensorKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    tensorflow::TensorProto proto;
    if (input.dtype() == DataType::kString || !is_plain(input.dtype())) {
      TAGFLOW_RETURN_IF_ERROR(graph::tensor_to_proto(input, &proto)
                                  .with_prefix("[SerializeTensor] "));
    } else {
      proto.set_dtype(tensorflow::DataType(input.dtype()));
      graph::shape_to_proto(input.shape(), proto.mutable_tensor_shape());
      proto.set_tensor_content(input.raw(), input.bytes());
    }
    std::string bytes;
    if (proto.ByteSizeLong() > size_t(kMostMessageBytes) ||
        !proto.SerializeToString(&bytes))
      return context.fail("{} is too large for a message", input.describe());
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, Shape{}));
    StringWriter(*output).take(*output->mutable_data<std::string>(),
                               std::move(bytes));
    return {};
  }
};

}  // namespace

void register_parsing_tensor_kernels(KernelRegistry& registry) {
  registry.add<ParseTensorKernel>("ParseTensor");
  registry.add<SerializeTensorKernel>("SerializeTensor");
}

}  // namespace tagflow::devices
