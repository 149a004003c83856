// ParseTensor, SerializeTensor: tensors as TensorProtos in strings.
#include <string>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/message.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

class ParseTensorKernel final : public BytesKernel {
 public:
  explicit ParseTensorKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (!input.is_scalar())
      return context.fail("serialized must be a scalar, not {}",
                          input.describe());
    int64_t repeated = kMostRepeatedBytes;
    TAGFLOW_ASSIGN(
        const Tensor read,
        parse_tensor(context, input.scalar_value<std::string>(), &repeated));
    const DataType wanted = context.node().output_dtypes()[0];
    if (read.dtype() != wanted)
      return context.fail("the tensor is {}, not of {}", read.describe(),
                          dtype_name(wanted));
    // It counts where outputs do.
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, read.shape()));
    copy_elements(read, 0, *output, 0, output->num_elements());
    return {};
  }
};

class SerializeTensorKernel final : public BytesKernel {
 public:
  explicit SerializeTensorKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(std::string bytes, tensor_message(context, context.input(0),
                                                     StringForm::kValues));
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
