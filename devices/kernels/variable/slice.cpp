// StridedSliceAssign, by reference and by handle.
#include "devices/kernels/array/slice.h"

#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

namespace {

class StridedAssignKernel final : public UpdateKernel {
 public:
  explicit StridedAssignKernel(const KernelInfo& info)
      : dtype_(info.input_dtype(4)), masks_(read_slice_masks(info)) {}

  Status claim(const KernelContext& context, StateClaim& claim) const override {
    return claim_variable(context, 0, StateLock::Mode::kExclusive, claim);
  }
  double cost(const KernelContext& context) const override {
    constexpr double kNanosecondsPerByte = 0.2;
    return kNanosecondsPerByte * double(context.input(4).bytes());
  }

 protected:
  Status update(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Variable * variable,
                   initialized_variable(context, 0, dtype_));
    const Shape shape = variable->value().shape();
    TAGFLOW_ASSIGN(const SliceGeometry geometry,
                   read_slice(context, 1, masks_, shape));
    TAGFLOW_ASSIGN(const Tensor value,
                   repeat_to_slice(context, context.input(4), geometry));
    if (value.num_elements() > 0) {
      TAGFLOW_ASSIGN(Tensor * target, variable->change_rows(context));
      StridedCopy copy = slice_selection(geometry, shape);
      copy.reverse();
      strided_copy(context, std::move(copy), value, *target);
    }
    pass_reference_on(context);
    return {};
  }

 private:
  const DataType dtype_;
  const SliceMasks masks_;
};

}  // namespace

void register_state_slice_kernels(KernelRegistry& registry) {
  for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"})
    registry.add<StridedAssignKernel>(op);
}

}  // namespace tagflow::devices
