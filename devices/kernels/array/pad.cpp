// Pad, PadV2, MirrorPad, MirrorPadGrad.
#include <vector>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

struct Padding {
  int64_t before = 0, after = 0;
};
using Paddings = boost::container::small_vector<Padding, 6>;

// Input 1: a row of two for each dimension of input 0.
Status read_paddings(const KernelContext& context, Paddings& paddings) {
  const Tensor& input = context.input(0);
  const Tensor& matrix = context.input(1);
  if (matrix.rank() != 2 || matrix.dim(1) != 2 || matrix.dim(0) != input.rank())
    return context.fail("paddings must be [{},2] for {}, are {}", input.rank(),
                        input.describe(), matrix.describe());
  for (int64_t i = 0; i < input.rank(); ++i) {
    const Padding padding{index_at(matrix, 2 * i), index_at(matrix, 2 * i + 1)};
    if (padding.before < 0 || padding.after < 0)
      return context.fail("paddings[{}] = [{},{}] are negative", i,
                          padding.before, padding.after);
    paddings.push_back(padding);
  }
  return {};
}

Result<Shape> padded_shape(const KernelContext& context,
                           const Paddings& paddings) {
  Shape shape = context.input(0).shape();
  for (int i = 0; i < shape.rank(); ++i) {
    int64_t dim = shape.dim(i);
    const Padding& padding = paddings[size_t(i)];
    if (__builtin_add_overflow(dim, padding.before, &dim) ||
        __builtin_add_overflow(dim, padding.after, &dim))
      return context.fail("padded dimension {} overflows", i);
    shape.set_dim(i, dim);
  }
  return Shape::make(shape.dims());
}

// Copies the input to the inside of the output.
void copy_inside(const KernelContext& context, const Paddings& paddings,
                 Tensor& output) {
  const Tensor& input = context.input(0);
  if (input.num_elements() == 0) return;
  const Shape input_shape = input.shape();
  const Shape shape = output.shape();
  const auto from = row_major_strides(input_shape.dims());
  const auto to = row_major_strides(shape.dims());
  StridedCopy copy;
  for (int i = 0; i < shape.rank(); ++i) {
    copy.to += paddings[size_t(i)].before * to[size_t(i)];
    copy.add(input.dim(i), from[size_t(i)], to[size_t(i)]);
  }
  strided_copy(context, std::move(copy), input, output);
}

// Pad fills with zeros, PadV2 with the value of input 2.
class PadKernel : public BytesKernel {
 public:
  explicit PadKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.2) {}

  Status compute(KernelContext& context) const override {
    Paddings paddings;
    TAGFLOW_RETURN_IF_ERROR(read_paddings(context, paddings));
    if (context.num_inputs() == 3 && !context.input(2).is_scalar())
      return context.fail("constant_values must be a scalar, got {}",
                          context.input(2).describe());
    TAGFLOW_ASSIGN(const Shape shape, padded_shape(context, paddings));
    if (shape == context.input(0).shape()) {
      context.set_output(0, context.input(0));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    if (context.num_inputs() == 3) {
      fill_elements(context, context.input(2), *output);
    } else {
      zero_elements(context, *output);
    }
    copy_inside(context, paddings, *output);
    return {};
  }
};

// Whether the border itself is mirrored too.
int64_t mirror_gap(const KernelInfo& info) {
  return attr_of<std::string>(info, "mode") == "SYMMETRIC" ? 0 : 1;
}

// The padding at one side of dimension `at`, as a copy from the elements that
// it mirrors: from the inside outwards. Dimensions before `at` are covered in
// full, since they are padded already; those after it only inside.
StridedCopy mirror(const Shape& shape, const Paddings& paddings, int at,
                   bool before, int64_t gap) {
  const auto strides = row_major_strides(shape.dims());
  StridedCopy copy;
  for (int i = 0; i < shape.rank(); ++i) {
    const Padding& padding = paddings[size_t(i)];
    const int64_t stride = strides[size_t(i)];
    const int64_t inside = shape.dim(i) - padding.before - padding.after;
    if (i < at) {
      copy.add(shape.dim(i), stride, stride);
    } else if (i > at) {
      copy.from += padding.before * stride;
      copy.to += padding.before * stride;
      copy.add(inside, stride, stride);
    } else if (before) {
      copy.from += (padding.before + gap) * stride;
      copy.to += (padding.before - 1) * stride;
      copy.add(padding.before, stride, -stride);
    } else {
      const int64_t end = padding.before + inside;
      copy.from += (end - 1 - gap) * stride;
      copy.to += end * stride;
      copy.add(padding.after, -stride, stride);
    }
  }
  return copy;
}

class MirrorPadKernel : public BytesKernel {
 public:
  explicit MirrorPadKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.2), gap_(mirror_gap(info)) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Paddings paddings;
    TAGFLOW_RETURN_IF_ERROR(read_paddings(context, paddings));
    for (int i = 0; i < input.rank(); ++i) {
      const Padding& padding = paddings[size_t(i)];
      if (std::max(padding.before, padding.after) > input.dim(i) - gap_)
        return context.fail(
            "paddings [{},{}] exceed what dimension {} of {} can mirror",
            padding.before, padding.after, i, input.describe());
    }
    TAGFLOW_ASSIGN(const Shape shape, padded_shape(context, paddings));
    if (shape == input.shape()) {
      context.set_output(0, input);
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    copy_inside(context, paddings, *output);
    for (int i = 0; i < shape.rank(); ++i)
      for (bool before : {true, false})
        strided_copy(context, mirror(shape, paddings, i, before, gap_), *output,
                     *output);
    return {};
  }

 private:
  int64_t gap_;
};

// Adds what `copy` would copy, within one tensor.
template <class T>
void add_along(const KernelContext& context, const StridedCopy& copy,
               size_t loop, const T* from, T* to) {
  if (loop == copy.loops.size()) {
    *to = T(*to + *from);
    return;
  }
  context.check_cancelled();
  const CopyLoop& steps = copy.loops[loop];
  for (int64_t i = 0; i < steps.count; ++i)
    add_along(context, copy, loop + 1, from + i * steps.from_stride,
              to + i * steps.to_stride);
}

// Folds each padding back onto what it mirrored, last dimension first, and
// returns the inside.
class MirrorPadGradKernel : public BytesKernel {
 public:
  explicit MirrorPadGradKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 1), gap_(mirror_gap(info)) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Paddings paddings;
    TAGFLOW_RETURN_IF_ERROR(read_paddings(context, paddings));
    const Shape shape = input.shape();
    Shape inside = shape;
    for (int i = 0; i < shape.rank(); ++i) {
      const Padding& padding = paddings[size_t(i)];
      const int64_t dim = shape.dim(i);
      if (padding.before > dim || padding.after > dim - padding.before)
        return context.fail("paddings [{},{}] exceed dimension {} of {}",
                            padding.before, padding.after, i, input.describe());
      inside.set_dim(i, dim - padding.before - padding.after);
      if (std::max(padding.before, padding.after) > inside.dim(i) - gap_)
        return context.fail(
            "paddings [{},{}] exceed the inside of dimension {} of {}",
            padding.before, padding.after, i, input.describe());
    }
    TAGFLOW_ASSIGN(Tensor folded, context.allocate_temp(input.dtype(), shape));
    copy_elements(input, 0, folded, 0, input.num_elements());
    const auto strides = row_major_strides(shape.dims());
    StridedCopy copy;
    const auto to = row_major_strides(inside.dims());
    if (folded.num_elements() > 0)
      for (int i = shape.rank() - 1; i >= 0; --i)
        for (bool before : {true, false})
          if (!fold(context, mirror(shape, paddings, i, before, gap_), folded))
            return error(Code::kUnimplemented, "[{}] cannot add elements of {}",
                         context.node().op(), dtype_name(input.dtype()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, inside));
    if (output->num_elements() == 0) return {};
    for (int i = 0; i < shape.rank(); ++i) {
      copy.from += paddings[size_t(i)].before * strides[size_t(i)];
      copy.add(inside.dim(i), strides[size_t(i)], to[size_t(i)]);
    }
    strided_copy(context, std::move(copy), folded, *output);
    return {};
  }

 private:
  static bool fold(const KernelContext& context, StridedCopy copy,
                   Tensor& tensor) {
    copy.reverse();
    for (const CopyLoop& loop : copy.loops)
      if (loop.count == 0) return true;
    return visit_numeric(tensor.dtype(), [&]<class T>(TypeTag<T>) {
      T* data = tensor.mutable_data<T>();
      add_along(context, copy, 0, data + copy.from, data + copy.to);
    });
  }

  int64_t gap_;
};

}  // namespace

void register_array_pad_kernels(KernelRegistry& registry) {
  registry.add<PadKernel>("Pad");
  registry.add<PadKernel>("PadV2");
  registry.add<MirrorPadKernel>("MirrorPad");
  registry.add<MirrorPadGradKernel>("MirrorPadGrad");
}

}  // namespace tagflow::devices
