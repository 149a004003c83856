// Concat, ConcatV2, ConcatOffset, Pack, Tile: join several tensors, or copies
// of one.
#include <limits>

#include "devices/copy.h"
#include "devices/element_mover.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// Inputs side by side: in each of `rows` outer rows of the output, which are
// `width` elements long, input i fills its own run.
class Joiner {
 public:
  Joiner(const KernelContext& context, Tensor& output, int64_t rows,
         int64_t width)
      : context_(context), output_(output), rows_(rows), width_(width) {}

  void append(const Tensor& input) {
    if (rows_ == 0 || input.num_elements() == 0) return;
    const int64_t run = input.num_elements() / rows_;
    StridedCopy copy;
    copy.to = at_;
    copy.add(rows_, run, width_);
    copy.add(run, 1, 1);
    strided_copy(context_, std::move(copy), input, output_);
    at_ += run;
  }

 private:
  const KernelContext& context_;
  Tensor& output_;
  int64_t rows_, width_;
  int64_t at_ = 0;
};

// Concat has its axis first, ConcatV2 last.
class ConcatKernel : public BytesKernel {
 public:
  explicit ConcatKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        axis_first_(info.node().op() == "Concat") {}

  Status compute(KernelContext& context) const override {
    const int count = context.num_inputs() - 1;
    const int first = axis_first_ ? 1 : 0;
    const Tensor& start = context.input(first);
    const int axis_input = axis_first_ ? 0 : count;
    if (context.input(axis_input).rank() > 1)
      return context.fail("axis must be a scalar, got {}",
                          context.input(axis_input).describe());
    TAGFLOW_ASSIGN(const int64_t axis,
                   index_scalar(context, axis_input, "axis"));
    TAGFLOW_ASSIGN(const int at, checked_axis(context, axis, start.rank()));

    Shape shape = start.shape();
    for (int i = 1; i < count; ++i) {
      const Tensor& input = context.input(first + i);
      bool fits = input.rank() == start.rank();
      for (int d = 0; fits && d < start.rank(); ++d)
        fits = d == at || input.dim(d) == start.dim(d);
      if (!fits)
        return context.fail("cannot join input {}, {}, to {} along {}", i,
                            input.describe(), start.describe(), at);
      int64_t sum = 0;
      if (__builtin_add_overflow(shape.dim(at), input.dim(at), &sum))
        return context.fail("the sizes along {} overflow", at);
      shape.set_dim(at, sum);
    }
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    const int64_t rows = product(shape.dims(), 0, at);
    Joiner joiner(context, *output, rows,
                  product(shape.dims(), at, shape.rank()));
    for (int i = 0; i < count; ++i) joiner.append(context.input(first + i));
    return {};
  }

 private:
  bool axis_first_;
};

// Joins rows, one from each input.
class ParallelConcatKernel final : public BytesKernel {
 public:
  explicit ParallelConcatKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        declared_(attr_of<PartialShape>(info, "shape")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& first = context.input(0);
    for (const Tensor& input : context.inputs())
      if (input.rank() < 1 || input.dim(0) != 1 ||
          input.shape() != first.shape())
        return context.fail("the inputs must be one row each, not {} and {}",
                            first.describe(), input.describe());
    Shape shape = first.shape();
    shape.set_dim(0, context.num_inputs());
    if (!declared_.accepts(shape))
      return context.fail("the result is of shape {}, not {}",
                          shape.to_string(), declared_.to_string());
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    Joiner joiner(context, *output, 1, shape.num_elements());
    for (const Tensor& input : context.inputs()) joiner.append(input);
    return {};
  }

 private:
  const PartialShape declared_;
};

class ConcatOffsetKernel : public CheapKernel {
 public:
  explicit ConcatOffsetKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    const Tensor& first = context.input(1);
    if (first.rank() != 1)
      return context.fail("shape 0 must be a vector, got {}", first.describe());
    if (!context.input(0).is_scalar())
      return context.fail("concat_dim must be a scalar, got {}",
                          context.input(0).describe());
    TAGFLOW_ASSIGN(const int64_t axis, index_scalar(context, 0, "concat_dim"));
    const auto rank = int(std::min<int64_t>(first.dim(0), kMaxRank));
    TAGFLOW_ASSIGN(const int at,
                   checked_axis(context, axis, rank, "concat_dim"));
    int64_t offset = 0;
    for (int i = 0; i < context.num_outputs(); ++i) {
      const Tensor& shape = context.input(i + 1);
      if (shape.rank() != 1 || shape.dim(0) != first.dim(0))
        return context.fail("shape {}, {}, is not as long as {}", i,
                            shape.describe(), first.describe());
      for (int d = 0; d < rank; ++d)
        if (d != at && index_at(shape, d) != index_at(first, d))
          return context.fail(
              "shapes 0 and {} differ in dimension {}: {} and {}", i, d,
              index_at(first, d), index_at(shape, d));
      TAGFLOW_ASSIGN(Tensor * output,
                     context.allocate_output(i, {first.dim(0)}));
      zero_elements(context, *output);
      if (output->dtype() == DataType::kInt64) {
        output->mutable_data<int64_t>()[at] = offset;
      } else {
        if (offset > std::numeric_limits<int32_t>::max())
          return context.fail("offset {} does not fit into int32", offset);
        output->mutable_data<int32_t>()[at] = int32_t(offset);
      }
      if (__builtin_add_overflow(offset, index_at(shape, at), &offset))
        return context.fail("the sizes along {} overflow", at);
    }
    return {};
  }
};

class PackKernel : public BytesKernel {
 public:
  explicit PackKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs),
        axis_(attr_of<int64_t>(info, "axis")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& first = context.input(0);
    const int count = context.num_inputs();
    TAGFLOW_ASSIGN(const int at,
                   checked_axis(context, axis_, first.rank() + 1));
    Shape shape = first.shape();
    for (int i = 1; i < count; ++i)
      if (!(context.input(i).shape() == shape))
        return context.fail("input {} is {}, input 0 {}", i,
                            context.input(i).describe(), first.describe());
    shape.insert_dim(at, count);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    if (count == 1) {
      TAGFLOW_ASSIGN(context.output(0), first.reshaped(shape));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (first.is_inline_scalar() && mover_of(context) == nullptr) {
      auto* bytes = static_cast<std::byte*>(output->mutable_raw());
      const size_t size = dtype_size(first.dtype());
      for (int i = 0; i < count; ++i)
        std::memcpy(bytes + size_t(i) * size, context.input(i).raw(), size);
      return {};
    }
    Joiner joiner(context, *output, product(shape.dims(), 0, at),
                  product(shape.dims(), at, shape.rank()));
    for (int i = 0; i < count; ++i) joiner.append(context.input(i));
    return {};
  }

 private:
  int64_t axis_;
};

class TileKernel : public BytesKernel {
 public:
  explicit TileKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    Shape::Dims multiples;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 1, "multiples", multiples));
    if (multiples.size() != size_t(input.rank()))
      return context.fail("{} multiples for {}", multiples.size(),
                          input.describe());
    Shape shape = input.shape();
    bool once = true;
    for (int i = 0; i < input.rank(); ++i) {
      const int64_t times = multiples[size_t(i)];
      if (times < 0)
        return context.fail("multiples[{}] is negative: {}", i, times);
      const auto dim = checked_multiply(shape.dim(i), times);
      if (!dim) return context.fail("dimension {} overflows", i);
      shape.set_dim(i, *dim);
      once = once && times == 1;
    }
    if (once) {
      context.set_output(0, input);
      return {};
    }
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    if (output->num_elements() == 0) return {};
    const Shape input_shape = input.shape();
    const auto from = row_major_strides(input_shape.dims());
    const auto to = row_major_strides(shape.dims());
    StridedCopy copy;
    for (int i = 0; i < input.rank(); ++i) {
      const auto d = size_t(i);
      copy.add(multiples[d], 0, to[d] * input.dim(i));
      copy.add(input.dim(i), from[d], to[d]);
    }
    strided_copy(context, std::move(copy), input, *output);
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    auto bytes = double(context.input(0).bytes());
    const Tensor& multiples = context.input(1);
    for (int64_t i = 0; i < multiples.num_elements(); ++i)
      bytes *= double(std::max<int64_t>(0, index_at(multiples, i)));
    return bytes;
  }
};

}  // namespace

void register_array_join_kernels(KernelRegistry& registry) {
  registry.add<ConcatKernel>("Concat");
  registry.add<ConcatKernel>("ConcatV2");
  registry.add<ConcatOffsetKernel>("ConcatOffset");
  registry.add<ParallelConcatKernel>("ParallelConcat");
  registry.add<PackKernel>("Pack");
  registry.add<TileKernel>("Tile");
}

}  // namespace tagflow::devices
