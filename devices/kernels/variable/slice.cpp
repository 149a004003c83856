// StridedSliceAssign, by reference and by handle.
#include "devices/kernels/array/slice.h"

#include "devices/kernels/variable/state_inputs.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

// Exchanges all strings that the copy would move.
void exchange(const StridedCopy& copy, Tensor& from, Tensor& to,
              size_t loop = 0, int64_t from_at = 0, int64_t to_at = 0) {
  if (loop == copy.loops.size())
    return exchange_strings(from, copy.from + from_at, to, copy.to + to_at, 1);
  const CopyLoop& over = copy.loops[loop];
  for (int64_t i = 0; i < over.count; ++i)
    exchange(copy, from, to, loop + 1, from_at + i * over.from_stride,
             to_at + i * over.to_stride);
}

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
    TAGFLOW_ASSIGN(Tensor value,
                   repeat_to_slice(context, context.input(4), geometry));
    if (value.num_elements() > 0) {
      TAGFLOW_ASSIGN(Tensor * target, variable->change_rows(context));
      StridedCopy copy = slice_selection(geometry, shape);
      copy.reverse();
      if (dtype_ == DataType::kString) {
        // Strings need memory as they are written: so the new ones are written
        // aside first, and an error changes nothing.
        TAGFLOW_ASSIGN(value,
                       copy_strings(value, *target->buffer()->allocator));
        exchange(copy, value, *target);
      } else {
        strided_copy(context, std::move(copy), value, *target);
      }
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
