// TensorArrayV3 and the ops that read and write one element.
#include "devices/kernels/containers/tensor_array.h"
#include "devices/kernels/containers/values.h"

namespace tagflow::devices {

namespace {

Result<TensorArray*> array_input(const KernelContext& context) {
  return object_input<TensorArray>(context, 0, "tensor array");
}

Status set_handle(KernelContext& context, ResourceHandle handle) {
  TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {}));
  *output->mutable_data<ResourceHandle>() = std::move(handle);
  return {};
}

class TensorArrayKernel final : public Kernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayKernel(const KernelInfo& info) {
    options_.name = attr_of<std::string>(info, "tensor_array_name");
    if (options_.name.empty()) options_.name = info.name();
    options_.dtype = attr_of<DataType>(info, "dtype");
    options_.element_shape = attr_of<PartialShape>(info, "element_shape");
    options_.dynamic_size = attr_of<bool>(info, "dynamic_size");
    options_.clear_after_read = attr_of<bool>(info, "clear_after_read");
    options_.identical_shapes = attr_of<bool>(info, "identical_element_shapes");
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const int64_t size, int32_input(context, 0, "size"));
    if (size < 0) return context.fail("the size is negative: {}", size);
    if (size > kMaxContainerElements)
      return error(Code::kResourceExhausted, "[{}] size {} is more than {}",
                   context.node().op(), size, kMaxContainerElements);
    TAGFLOW_ASSIGN(StepResources * resources, step_resources(context));
    TAGFLOW_RETURN_IF_ERROR(set_handle(
        context,
        resources->make<TensorArray>(options_, size, context.allocator())));
    context.set_output(1, Tensor::scalar(0.0f));
    return {};
  }
  double cost(const KernelContext& context) const override {
    return cost_of_elements(context, 0);
  }

 private:
  TensorArray::Options options_;
};

// The flow input only orders operations; it is passed on.
class TensorArrayGradKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayGradKernel(const KernelInfo& info)
      : source_(attr_of<std::string>(info, "source")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(TensorArray * array, array_input(context));
    Shape prepend;
    if (context.num_inputs() > 2) {
      TAGFLOW_ASSIGN(const PartialShape shape,
                     shape_input(context, 2, "shape_to_prepend"));
      const auto known = shape.to_shape();
      if (!known)
        return context.fail("shape_to_prepend must be a shape, not {}",
                            context.input(2).to_string());
      prepend = *known;
    }
    TAGFLOW_ASSIGN(context.output(0),
                   array->gradient(context, source_, prepend));
    context.set_output(1, context.input(1));
    return {};
  }

 private:
  std::string source_;
};

// A gradient array adds; others store a reference.
class TensorArrayWriteKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayWriteKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.2) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(TensorArray * array, array_input(context));
    TAGFLOW_ASSIGN(const int64_t index, int32_input(context, 1, "index"));
    TAGFLOW_RETURN_IF_ERROR(array->write(context, index, context.input(2)));
    context.set_output(0, context.input(3));
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    constexpr size_t kSmall = size_t(1) << 16;
    const size_t bytes = context.input(2).bytes();
    if (bytes < kSmall) return 0;
    const auto array = array_input(context);
    return array.ok() && (*array)->is_gradient() ? double(bytes) : 0;
  }
};

class TensorArrayReadKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayReadKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(TensorArray * array, array_input(context));
    TAGFLOW_ASSIGN(const int64_t index, int32_input(context, 1, "index"));
    if (array->dtype() != dtype_)
      return context.fail("cannot read a {} from {}", dtype_name(dtype_),
                          array->describe());
    TAGFLOW_ASSIGN(context.output(0), array->read(context, index));
    return {};
  }

 private:
  DataType dtype_;
};

class TensorArraySizeKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArraySizeKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(TensorArray * array, array_input(context));
    TAGFLOW_ASSIGN(const int64_t size, array->size(context));
    context.set_output(0, Tensor::scalar(int32_t(size)));
    return {};
  }
};

class TensorArrayCloseKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit TensorArrayCloseKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(TensorArray * array, array_input(context));
    array->end();
    return {};
  }
};

}  // namespace

void register_tensor_array_kernels(KernelRegistry& registry) {
  registry.add<TensorArrayKernel>("TensorArrayV3");
  registry.add<TensorArrayGradKernel>("TensorArrayGradV3");
  registry.add<TensorArrayGradKernel>("TensorArrayGradWithShape");
  registry.add<TensorArrayWriteKernel>("TensorArrayWriteV3");
  registry.add<TensorArrayReadKernel>("TensorArrayReadV3");
  registry.add<TensorArraySizeKernel>("TensorArraySizeV3");
  registry.add<TensorArrayCloseKernel>("TensorArrayCloseV3");
}

}  // namespace tagflow::devices
