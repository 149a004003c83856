// StridedSliceAssign, by reference and by handle.
#include <algorithm>

#include "devices/cpu/array_slice.h"
#include "devices/cpu/state_kernels.h"

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
                   broadcast(context, context.input(4), geometry));
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
  // The value in the slice's shape: as it is, or repeated along dimensions that
  // it does not have, or has one of.
  static Result<Tensor> broadcast(const KernelContext& context,
                                  const Tensor& value,
                                  const SliceGeometry& geometry) {
    const auto dims = slice_dims(geometry);
    const Shape shape = value.shape();
    const auto given = shape.dims();
    if (std::ranges::equal(dims, given)) return value;
    const size_t missing = dims.size() - std::min(dims.size(), given.size());
    bool fits = given.size() <= dims.size();
    for (size_t i = 0; fits && i < given.size(); ++i)
      fits = given[i] == 1 || given[i] == dims[missing + i];
    if (!fits)
      return context.fail("the value is {}, the slice is [{}]",
                          value.describe(), fmt::join(geometry.output, ","));
    TAGFLOW_ASSIGN(
        Tensor repeated,
        Tensor::allocate(value.dtype(), Shape({dims.begin(), dims.end()}),
                         context.allocator()));
    if (repeated.num_elements() == 0) return repeated;
    StridedCopy copy;
    copy.loops.resize(dims.size());
    int64_t from = 1, to = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      const bool is_repeated = i < missing || given[i - missing] == 1;
      copy.loops[i] = {dims[i], is_repeated ? 0 : from, to};
      to *= dims[i];
      if (!is_repeated) from *= dims[i];
    }
    strided_copy(context, std::move(copy), value, repeated);
    return repeated;
  }

  const DataType dtype_;
  const SliceMasks masks_;
};

}  // namespace

void register_state_slice_kernels(KernelRegistry& registry) {
  for (const char* op : {"StridedSliceAssign", "ResourceStridedSliceAssign"})
    registry.add<StridedAssignKernel>(op);
}

}  // namespace tagflow::devices
