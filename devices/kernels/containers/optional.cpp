// Optionals, FakeParam and DeviceIndex.
#include "devices/kernels/containers/optional.h"

#include "devices/tensor_rows.h"

namespace tagflow::devices {

namespace {

class OptionalFromValueKernel final : public CheapKernel {
 public:
  explicit OptionalFromValueKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const auto inputs = context.inputs();
    return new_value_output<Optional>(
               context, 0, std::vector<Tensor>(inputs.begin(), inputs.end()))
        .status();
  }
};

class OptionalNoneKernel final : public CheapKernel {
 public:
  explicit OptionalNoneKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    return new_value_output<Optional>(context, 0).status();
  }
};

class OptionalHasValueKernel final : public CheapKernel {
 public:
  explicit OptionalHasValueKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* optional,
                   value_input<Optional>(context, 0, "optional"));
    context.set_output(0, Tensor::scalar(optional->has_value()));
    return {};
  }
};

class OptionalGetValueKernel final : public CheapKernel {
 public:
  explicit OptionalGetValueKernel(const KernelInfo& info)
      : shapes_(attr_of<std::vector<PartialShape>>(info, "output_shapes")) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* optional,
                   value_input<Optional>(context, 0, "optional"));
    if (!optional->has_value())
      return context.fail("the optional has no value");
    const auto& values = optional->values();
    if (values.size() != size_t(context.num_outputs()))
      return context.fail("{} values are wanted of an {}",
                          context.num_outputs(), optional->describe());
    for (size_t i = 0; i < values.size(); ++i) {
      const DataType dtype = context.node().output_dtypes()[i];
      if (values[i].dtype() != dtype || i >= shapes_.size() ||
          !accepts_shape_of(shapes_[i], values[i]))
        return context.fail("value {} is {}, not {} of shape {}", i,
                            values[i].describe(), dtype_name(dtype),
                            i < shapes_.size() ? shapes_[i].to_string() : "?");
      context.set_output(int(i), values[i]);
    }
    return {};
  }

 private:
  std::vector<PartialShape> shapes_;
};

// A placeholder for an output of a branch that only the other branch computes.
// It is never read, so its unknown dimensions are 0.
class FakeParamKernel final : public BytesKernel {
 public:
  explicit FakeParamKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), dtype_(info.output_dtype(0)) {
    const auto shape = attr_of<PartialShape>(info, "shape");
    if (!shape.has_rank()) return;
    for (const int64_t dim : shape.dims())
      shape_.add_dim(dim == PartialShape::kUnknown ? 0 : dim);
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(context.output(0), make_zeros(context, dtype_, shape_));
    return {};
  }

 private:
  double work_bytes(const KernelContext&) const override {
    return double(shape_.num_elements()) * double(dtype_size(dtype_));
  }

  DataType dtype_;
  Shape shape_;
};

// The index in the list of the type of this device; the list's length if it is
// missing.
class DeviceIndexKernel final : public CheapKernel {
 public:
  explicit DeviceIndexKernel(const KernelInfo& info) {
    const auto names = attr_of<std::vector<std::string>>(info, "device_names");
    while (size_t(index_) < names.size() && names[size_t(index_)] != "CPU")
      ++index_;
  }

  Status compute(KernelContext& context) const override {
    context.set_output(0, Tensor::scalar(index_));
    return {};
  }

 private:
  int32_t index_ = 0;
};

}  // namespace

void register_optional_kernels(KernelRegistry& registry) {
  registry.add<OptionalFromValueKernel>("OptionalFromValue");
  registry.add<OptionalNoneKernel>("OptionalNone");
  registry.add<OptionalHasValueKernel>("OptionalHasValue");
  registry.add<OptionalGetValueKernel>("OptionalGetValue");
  registry.add<FakeParamKernel>("FakeParam");
  registry.add<DeviceIndexKernel>("DeviceIndex");
}

}  // namespace tagflow::devices
