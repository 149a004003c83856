// Gather, GatherV2, GatherNd, ScatterNd, TensorScatter*.
#include "devices/kernels/array/gather.h"

#include <algorithm>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

// Slices of params selected by number. The numbers come in batches; each batch
// is used `repeat` times in a row, each time on the next `part_slices` slices
// of params. A number of -1 gives zeros.
struct SliceGather {
  std::span<const int64_t> numbers;
  int64_t slice = 1;      // elements of a slice
  int64_t outputs = 0;    // slices of the output
  int64_t per_batch = 0;  // numbers of a batch
  int64_t repeat = 1;
  int64_t part_slices = 0;
};

template <class T>
void gather_slices(const KernelContext& context, const SliceGather& gather,
                   const Tensor& params, Tensor& output) {
  const T* from = static_cast<const T*>(params.raw());
  T* to = static_cast<T*>(output.mutable_raw());
  const ElementWriter<T> writer(output);
  const int64_t slice = gather.slice;
  auto body = [&](int64_t begin, int64_t end) {
    int64_t use = begin / gather.per_batch;
    int64_t at = begin % gather.per_batch;
    auto numbers_of = [&](int64_t n) {
      return gather.numbers.data() + n / gather.repeat * gather.per_batch;
    };
    const int64_t* numbers = numbers_of(use);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t number = numbers[at];
      if (number < 0) {
        std::fill_n(to + i * slice, slice, T());
      } else {
        const T* source = from + (use * gather.part_slices + number) * slice;
        if (slice == 1) {
          writer.assign(to[i], *source);
        } else {
          writer.copy(source, slice, to + i * slice);
        }
      }
      if (++at == gather.per_batch) {
        at = 0;
        numbers = numbers_of(++use);
      }
    }
  };
  const double unit_cost = 2 + 0.1 * double(slice) * double(sizeof(T));
  if (double(gather.outputs) * unit_cost < 5000) {
    body(0, gather.outputs);
  } else {
    context.parallel_for(gather.outputs, unit_cost, body);
  }
}

void run_gather(const KernelContext& context, const SliceGather& gather,
                const Tensor& params, Tensor& output) {
  visit_movable(params.dtype(), [&]<class T>(TypeTag<T>) {
    gather_slices<T>(context, gather, params, output);
  });
}

// Gather is GatherV2 along axis 0.
class GatherKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    if (gathers_of_reference(info)) return make_reference_gather(info);
    return std::unique_ptr<Kernel>(new GatherKernel(info));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const GatherPlan plan, plan_gather(context, batch_dims_));
    return gather_rows(context, context.input(0), plan);
  }

 private:
  explicit GatherKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs, 0.2),
        batch_dims_(attr_of<int64_t>(info, "batch_dims")) {}

  double work_bytes(const KernelContext& context) const override {
    const Tensor& params = context.input(0);
    if (params.rank() < 1 || params.dim(0) == 0) return 0;
    return double(context.input(1).num_elements()) *
           (8 + double(params.bytes()) / double(params.dim(0)));
  }

  int64_t batch_dims_;
};

class GatherNdKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    if (gathers_of_reference(info)) return make_reference_gather_nd(info);
    TAGFLOW_ASSIGN(const BadIndices policy, bad_indices_policy(info));
    return std::unique_ptr<Kernel>(new GatherNdKernel(info, policy));
  }

  Status compute(KernelContext& context) const override {
    return gather_by_vectors(context, context.input(0), policy_);
  }

 private:
  GatherNdKernel(const KernelInfo& info, BadIndices policy)
      : BytesKernel(info, Work::kOutputs, 0.2), policy_(policy) {}

  double work_bytes(const KernelContext& context) const override {
    return double(context.input(1).bytes());
  }

  BadIndices policy_;
};

// Updates into zeros of a given shape; updates of the same slice add up.
class ScatterNdKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const BadIndices policy, bad_indices_policy(info));
    return std::unique_ptr<Kernel>(new ScatterNdKernel(info, policy));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& indices = context.input(0);
    const Tensor& updates = context.input(1);
    Shape::Dims dims;
    TAGFLOW_RETURN_IF_ERROR(index_vector(context, 2, "shape", dims));
    TAGFLOW_ASSIGN(const Shape shape, Shape::make({dims.data(), dims.size()}));
    TAGFLOW_RETURN_IF_ERROR(check_updates(context, indices, updates, shape));
    TAGFLOW_ASSIGN(const Tensor numbers,
                   slice_numbers(context, indices, shape, policy_));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    zero_elements(context, *output);
    return scatter_slices(context, numbers, updates, Combine::kAdd, *output);
  }

 private:
  ScatterNdKernel(const KernelInfo& info, BadIndices policy)
      : BytesKernel(info, work_of(info), 0.5), policy_(policy) {}

  // Many updates may fall into a small output.
  static Work work_of(const KernelInfo& info) {
    constexpr int64_t kFew = 1 << 10;
    const PartialShape& shape = info.node().output_shape(0);
    return shape.fully_known() && shape.num_elements() <= kFew ? Work::kInputs
                                                               : Work::kOutputs;
  }
  double work_bytes(const KernelContext& context) const override {
    double bytes = BytesKernel::work_bytes(context);
    auto zeros = double(dtype_size(context.input(1).dtype()));
    const Tensor& shape = context.input(2);
    for (int64_t i = 0; i < shape.num_elements(); ++i)
      zeros *= double(std::max<int64_t>(0, index_at(shape, i)));
    return bytes + zeros;
  }

  BadIndices policy_;
};

// TensorScatter* and ScatterNdNonAliasingAdd: updates into a copy of input 0.
class TensorScatterKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const BadIndices policy, bad_indices_policy(info));
    return std::unique_ptr<Kernel>(new TensorScatterKernel(info, policy));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const Tensor& indices = context.input(1);
    const Tensor& updates = context.input(2);
    const Shape shape = input.shape();
    if (shape.rank() < 1)
      return context.fail("the tensor must be at least a vector, got {}",
                          input.describe());
    TAGFLOW_RETURN_IF_ERROR(check_updates(context, indices, updates, shape));
    TAGFLOW_ASSIGN(const Tensor numbers,
                   slice_numbers(context, indices, shape, policy_));
    TAGFLOW_ASSIGN(Tensor * output, input_as_output(context));
    return scatter_slices(context, numbers, updates, combine_, *output);
  }

 private:
  TensorScatterKernel(const KernelInfo& info, BadIndices policy)
      : BytesKernel(info, Work::kInputs),
        policy_(policy),
        combine_(combine_of(info.node().op())) {}
  BadIndices policy_;
  Combine combine_;
};

}  // namespace

Status gather_rows(KernelContext& context, const Tensor& params,
                   const GatherPlan& plan) {
  if (plan.shape.num_elements() == 0)  // for any indices
    return context.allocate_output(0, plan.shape).status();
  TAGFLOW_ASSIGN(const Tensor numbers, as_int64(context, context.input(1)));
  const auto flat = numbers.flat<int64_t>();
  for (size_t i = 0; i < flat.size(); ++i)
    if (flat[i] < 0 || flat[i] >= plan.limit)
      return context.fail("indices[{}] = {} is outside [0, {})", i, flat[i],
                          plan.limit);
  TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, plan.shape));
  SliceGather gather;
  gather.numbers = flat;
  gather.slice = plan.slice;
  gather.outputs = output->num_elements() / gather.slice;
  gather.repeat = plan.repeat;
  gather.per_batch = plan.per_batch;
  gather.part_slices = plan.limit;
  run_gather(context, gather, params, *output);
  return {};
}

Status gather_by_vectors(KernelContext& context, const Tensor& params,
                         BadIndices policy) {
  const Tensor& indices = context.input(1);
  if (params.rank() < 1)
    return context.fail("params must be at least a vector, got {}",
                        params.describe());
  const Shape whole = params.shape();
  TAGFLOW_ASSIGN(const Tensor numbers,
                 slice_numbers(context, indices, whole, policy));
  const int prefix = indices.rank() - 1;
  const auto depth = int(indices.dim(prefix));
  Shape shape;
  for (int i = 0; i < prefix; ++i) shape.add_dim(indices.dim(i));
  for (int i = depth; i < whole.rank(); ++i) shape.add_dim(whole.dim(i));
  TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
  if (params.num_elements() == 0 && numbers.num_elements() > 0)
    return context.fail("{} slices are wanted of params {}, which are empty",
                        numbers.num_elements(), params.describe());
  TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
  if (output->num_elements() == 0) return {};
  SliceGather gather;
  gather.numbers = numbers.flat<int64_t>();
  gather.slice = product(whole.dims(), depth, whole.rank());
  gather.outputs = gather.per_batch = numbers.num_elements();
  run_gather(context, gather, params, *output);
  return {};
}

void register_array_gather_kernels(KernelRegistry& registry) {
  registry.add<GatherKernel>("Gather");
  registry.add<GatherKernel>("GatherV2");
  registry.add<GatherNdKernel>("GatherNd");
  registry.add<ScatterNdKernel>("ScatterNd");
  for (const char* op :
       {"TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub",
        "TensorScatterMin", "TensorScatterMax", "ScatterNdNonAliasingAdd"})
    registry.add<TensorScatterKernel>(op);
}

}  // namespace tagflow::devices
