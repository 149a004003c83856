// Reverse, ReverseV2, ReverseSequence, Roll.
#include <vector>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// The dimensions to reverse are flags in Reverse and axes in ReverseV2.
class ReverseKernel : public BytesKernel {
 public:
  explicit ReverseKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.2) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    boost::container::small_vector<bool, 8> reversed(size_t(input.rank()),
                                                     false);
    TAGFLOW_RETURN_IF_ERROR(read_reversed(context, reversed));
    bool any = false;
    for (int i = 0; i < input.rank(); ++i)
      any = any || (reversed[size_t(i)] && input.dim(i) > 1);
    if (!any) {
      context.set_output(0, input);
      return {};
    }
    const Shape shape = input.shape();
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    const auto strides = row_major_strides(shape.dims());
    StridedCopy copy;
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t stride = strides[size_t(i)];
      if (reversed[size_t(i)]) copy.from += (shape.dim(i) - 1) * stride;
      copy.add(shape.dim(i), reversed[size_t(i)] ? -stride : stride, stride);
    }
    strided_copy(context, std::move(copy), input, *output);
    return {};
  }

 private:
  template <class Flags>
  static Status read_reversed(const KernelContext& context, Flags& reversed) {
    const Tensor& input = context.input(0);
    const Tensor& which = context.input(1);
    if (which.dtype() == DataType::kBool) {
      if (which.rank() != 1 || which.dim(0) != input.rank())
        return context.fail("dims must have a flag per dimension of {}, is {}",
                            input.describe(), which.describe());
      for (int i = 0; i < input.rank(); ++i)
        reversed[size_t(i)] = which.data<bool>()[i];
      return {};
    }
    Shape::Dims axes;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "axis", axes));
    for (int64_t axis : axes) {
      TAGFLOW_ASSIGN(const int at, checked_axis(context, axis, input.rank()));
      if (reversed[size_t(at)])
        return context.fail("axis {} is given twice", at);
      reversed[size_t(at)] = true;
    }
    return {};
  }
};

// For each index along batch_dim, the first lengths[index] steps of seq_dim are
// reversed; the others stay.
class ReverseSequenceKernel : public BytesKernel {
 public:
  explicit ReverseSequenceKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.3),
        batch_dim_(attr_of<int64_t>(info, "batch_dim")),
        seq_dim_(attr_of<int64_t>(info, "seq_dim")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (batch_dim_ < 0 || batch_dim_ >= input.rank() || seq_dim_ < 0 ||
        seq_dim_ >= input.rank() || batch_dim_ == seq_dim_)
      return context.fail(
          "batch_dim {} and seq_dim {} are not two dimensions of {}",
          batch_dim_, seq_dim_, input.describe());
    const auto batch = int(batch_dim_), seq = int(seq_dim_);
    Shape::Dims lengths;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "seq_lengths", lengths));
    if (int64_t(lengths.size()) != input.dim(batch))
      return context.fail("{} lengths for dimension {} of {}", lengths.size(),
                          batch, input.describe());
    for (size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] < 0 || lengths[i] > input.dim(seq))
        return context.fail(
            "seq_lengths[{}] = {} is outside dimension {} of "
            "{}",
            i, lengths[i], seq, input.describe());
    const Shape shape = input.shape();
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    const auto strides = row_major_strides(shape.dims());
    for (size_t i = 0; i < lengths.size(); ++i) {
      context.check_cancelled();
      for (bool reversed : {true, false}) {
        StridedCopy copy;
        copy.from = copy.to = int64_t(i) * strides[size_t(batch)];
        const int64_t step = strides[size_t(seq)];
        if (reversed) {
          copy.from += (lengths[i] - 1) * step;
        } else {
          copy.from += lengths[i] * step;
          copy.to += lengths[i] * step;
        }
        for (int d = 0; d < shape.rank(); ++d) {
          const int64_t stride = strides[size_t(d)];
          if (d == seq) {
            copy.add(reversed ? lengths[i] : shape.dim(d) - lengths[i],
                     reversed ? -stride : stride, stride);
          } else if (d != batch) {
            copy.add(shape.dim(d), stride, stride);
          }
        }
        strided_copy(context, std::move(copy), input, *output);
      }
    }
    return {};
  }

 private:
  int64_t batch_dim_, seq_dim_;
};

class RollKernel : public BytesKernel {
 public:
  explicit RollKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.2) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const Tensor& shift = context.input(1);
    const Tensor& axis = context.input(2);
    if (input.rank() < 1)
      return context.fail("input must be at least a vector, got {}",
                          input.describe());
    if (shift.rank() > 1 || !(shift.shape() == axis.shape()))
      return context.fail("shift {} and axis {} must be scalars or as many",
                          shift.describe(), axis.describe());
    const Shape shape = input.shape();
    const bool empty = input.num_elements() == 0;
    Shape::Dims shifts(size_t(shape.rank()), 0);  // each within its dimension
    for (int64_t i = 0; i < shift.num_elements(); ++i) {
      TAGFLOW_ASSIGN(const int at,
                     checked_axis(context, index_at(axis, i), shape.rank()));
      const int64_t dim = empty ? 1 : shape.dim(at);
      int64_t& sum = shifts[size_t(at)];
      sum = (sum + index_at(shift, i) % dim + dim) % dim;
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    roll(context, 0, shifts, row_major_strides(shape.dims()), {}, *output);
    return {};
  }

 private:
  // Divides the dimensions from `at` on where they wrap around, and copies each
  // block.
  static void roll(const KernelContext& context, int at,
                   const Shape::Dims& shifts, const Shape::Dims& strides,
                   StridedCopy copy, Tensor& output) {
    const Tensor& input = context.input(0);
    if (at == input.rank()) {
      strided_copy(context, std::move(copy), input, output);
      return;
    }
    const int64_t stride = strides[size_t(at)];
    const int64_t shift = shifts[size_t(at)];
    const int64_t rest = input.dim(at) - shift;
    StridedCopy first = copy;
    first.to += shift * stride;
    first.add(rest, stride, stride);
    roll(context, at + 1, shifts, strides, std::move(first), output);
    if (shift == 0) return;
    copy.from += rest * stride;
    copy.add(shift, stride, stride);
    roll(context, at + 1, shifts, strides, std::move(copy), output);
  }
};

}  // namespace

void register_array_reverse_kernels(KernelRegistry& registry) {
  registry.add<ReverseKernel>("Reverse");
  registry.add<ReverseKernel>("ReverseV2");
  registry.add<ReverseSequenceKernel>("ReverseSequence");
  registry.add<RollKernel>("Roll");
}

}  // namespace tagflow::devices
