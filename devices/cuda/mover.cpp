#include "devices/cuda/mover.h"

#include <limits>

#include "devices/cuda/kernels.h"
#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/device.h"

namespace tagflow::devices {
namespace {

// cuBLAS's name of a type, and the type in which it sums.
struct BlasType {
  cudaDataType_t data;
  cublasComputeType_t compute;
};

Result<BlasType> blas_type(const KernelContext& context, DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return BlasType{CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DataType::kDouble:
      return BlasType{CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DataType::kHalf:
      return BlasType{CUDA_R_16F, CUBLAS_COMPUTE_32F};
    case DataType::kBFloat16:
      return BlasType{CUDA_R_16BF, CUBLAS_COMPUTE_32F};
    default:
      return error(Code::kUnimplemented, "[{}] no product of type {} on a GPU",
                   context.node().op(), dtype_name(dtype));
  }
}

const std::byte* at(const Tensor& tensor, int64_t element) {
  return static_cast<const std::byte*>(tensor.raw()) +
         size_t(element) * dtype_size(tensor.dtype());
}

// The arguments for the loops [first, end) of a copy.
cuda::CopyArgs copy_args(const StridedCopy& copy, size_t first) {
  cuda::CopyArgs args;
  for (size_t i = first; i < copy.loops.size(); ++i) {
    const CopyLoop& loop = copy.loops[i];
    args.counts[args.loops] = loop.count;
    args.from_strides[args.loops] = loop.from_stride;
    args.to_strides[args.loops] = loop.to_stride;
    args.total *= loop.count;
    ++args.loops;
  }
  return args;
}

}  // namespace

CudaMover::~CudaMover() {
  const OnDevice on(memory_.device());
  if (handle_ != nullptr) blas_->destroy(handle_);
}

// A kernel supports only so many loops; the loops around them run here. Only
// programs made for it need more.
void CudaMover::move(const StridedCopy& copy, const Tensor& from, Tensor& to) {
  const size_t size = dtype_size(to.dtype());
  const size_t rank = copy.loops.size();
  const size_t outer =
      rank > size_t(cuda::kMaxLoops) ? rank - size_t(cuda::kMaxLoops) : 0;
  int64_t rounds = 1;
  for (size_t i = 0; i < outer; ++i) rounds *= copy.loops[i].count;
  cuda::CopyArgs args = copy_args(copy, outer);
  const Result<Tensor> source = readable(from);
  if (!source.ok()) return note(source.status());
  await(to);
  args.from = operand_of(*source);
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t in = copy.from, out = copy.to, index = round;
    for (size_t i = outer; i-- > 0;) {
      in += index % copy.loops[i].count * copy.loops[i].from_stride;
      out += index % copy.loops[i].count * copy.loops[i].to_stride;
      index /= copy.loops[i].count;
    }
    args.from_offset = in;
    args.to = static_cast<std::byte*>(to.mutable_raw()) + size_t(out) * size;
    note(cuda::copy_strided(args, size, memory_.compute().stream()));
  }
  note_written(to);
}

void CudaMover::note(cudaError_t result) {
  if (result != cudaSuccess) note(cuda_status(result, "launching a kernel"));
}

void CudaMover::note_written(const Tensor& tensor) {
  if (!memory_.holds(tensor)) return;
  const Result<uint64_t> ticket = memory_.compute().record();
  if (!ticket.ok()) return note(ticket.status());
  memory_.note_ready(tensor, memory_.compute(), *ticket);
}

Result<Tensor> CudaMover::readable(const Tensor& tensor) {
  if (!host_readable(tensor)) {
    await(tensor);
    return tensor;
  }
  if (fits_operand(tensor)) return tensor;
  TAGFLOW_ASSIGN(Tensor copy,
                 Tensor::allocate(tensor.dtype(), tensor.shape(), memory_));
  // The source is not pinned: CUDA has read it when this returns.
  note(cudaMemcpyAsync(copy.mutable_raw(), tensor.raw(), tensor.bytes(),
                       cudaMemcpyHostToDevice, memory_.compute().stream()));
  return copy;
}

void CudaMover::clear(Tensor& to) {
  await(to);
  note(cudaMemsetAsync(to.mutable_raw(), 0, to.bytes(),
                       memory_.compute().stream()));
  note_written(to);
}

Status CudaMover::start_blas() {
  if (blas_started_) return {};
  TAGFLOW_ASSIGN(blas_, BlasLibrary::load());
  const auto check = [this](cublasStatus_t result) {
    return blas_->check(result, "starting cuBLAS");
  };
  if (handle_ == nullptr)
    TAGFLOW_RETURN_IF_ERROR(check(blas_->create(&handle_)));
  TAGFLOW_RETURN_IF_ERROR(
      check(blas_->set_stream(handle_, memory_.compute().stream())));
  // Partial sums must not be combined in 16 bits, either.
  TAGFLOW_RETURN_IF_ERROR(check(blas_->set_math_mode(
      handle_, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
  blas_started_ = true;
  return {};
}

// cuBLAS stores matrices by columns: so it computes the transposed product, of
// the transposed factors in reverse order.
Status CudaMover::multiply(const KernelContext& context,
                           const ProductBatch& batch, const Tensor& a,
                           const Tensor& b, Tensor& out) {
  if (a.dtype() != out.dtype() || b.dtype() != out.dtype())
    return error(
        Code::kUnimplemented, "[{}] no product of {} and {} to {} on a GPU",
        context.node().op(), a.describe(), b.describe(), out.describe());
  TAGFLOW_ASSIGN(const BlasType type, blas_type(context, out.dtype()));
  if (batch.k == 0) {
    clear(out);
    return {};
  }
  TAGFLOW_RETURN_IF_ERROR(start_blas());
  const float one = 1, zero = 0;
  const double double_one = 1, double_zero = 0;
  const bool is_double = type.compute == CUBLAS_COMPUTE_64F;
  const auto form = [](const FactorForm& factor) {
    return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  // One call covers the innermost dimension of the batch, or a single product.
  const int64_t per_call = batch.dims.empty() ? 1 : batch.dims.back().size;
  const int64_t a_step = batch.dims.empty() ? 0 : batch.dims.back().a_step;
  const int64_t b_step = batch.dims.empty() ? 0 : batch.dims.back().b_step;
  const int64_t total = batch.count();
  for (int64_t i = 0; i < total; i += per_call) {
    const auto [in_a, in_b] = batch.factors(i);
    TAGFLOW_RETURN_IF_ERROR(blas_->check(
        blas_->multiply(
            handle_, form(batch.b_form), form(batch.a_form), batch.n, batch.m,
            batch.k, is_double ? static_cast<const void*>(&double_one) : &one,
            at(b, in_b * batch.k * batch.n), type.data,
            batch.b_form.transposed ? batch.k : batch.n,
            b_step * batch.k * batch.n, at(a, in_a * batch.m * batch.k),
            type.data, batch.a_form.transposed ? batch.m : batch.k,
            a_step * batch.m * batch.k,
            is_double ? static_cast<const void*>(&double_zero) : &zero,
            static_cast<std::byte*>(out.mutable_raw()) +
                size_t(i * batch.m * batch.n) * dtype_size(out.dtype()),
            type.data, batch.n, batch.m * batch.n, per_call, type.compute,
            CUBLAS_GEMM_DEFAULT),
        "multiplying"));
  }
  return {};
}

Status CudaMover::add(const KernelContext& context, const Tensor& a,
                      const Tensor& b, bool subtracts, Tensor& out) {
  const auto op = subtracts ? cuda::Binary::kSubtract : cuda::Binary::kAdd;
  const auto type = element_of(out.dtype());
  if (!type || !cuda::has_binary(op, *type))
    return error(Code::kUnimplemented, "[{}] no sum of type {} on a GPU",
                 context.node().op(), dtype_name(out.dtype()));
  cuda::ElementwiseArgs args;
  args.total = out.num_elements();
  if (args.total == 0) return {};
  TAGFLOW_ASSIGN(const Tensor left, readable(a));
  TAGFLOW_ASSIGN(const Tensor right, readable(b));
  await(out);
  args.strides[0][0] = args.strides[1][0] = 1;
  args.in[0] = operand_of(left);
  args.in[1] = operand_of(right);
  args.out = out.mutable_raw();
  note(cuda::binary(op, *type, args, memory_.compute().stream()));
  note_written(out);
  return {};
}

Status CudaMover::train(const KernelContext& context,
                        const DenseTraining& training) {
  const DataType dtype = training.gradient->dtype();
  const auto type = element_of(dtype);
  const cuda::TrainingStep step = cuda::find_training_step(training.rule);
  if (step == nullptr || !type || !is_floating(dtype))
    return error(Code::kUnimplemented, "[{}] no such step of type {} on a GPU",
                 context.node().op(), dtype_name(dtype));
  static_assert(cuda::TrainingArgs::kMostStates == DenseTraining::kMostStates);
  cuda::TrainingArgs args;
  args.total = training.gradient->num_elements();
  if (args.total == 0) return {};
  args.scalars = training.scalars.data();
  args.option = training.option;
  TAGFLOW_ASSIGN(const Tensor gradient, readable(*training.gradient));
  args.gradient = operand_of(gradient);
  DenseTraining::States<Tensor> before;
  for (size_t i = 0; i < training.before.size(); ++i) {
    TAGFLOW_ASSIGN(Tensor state, readable(*training.before[i]));
    args.before[i] = operand_of(before.emplace_back(std::move(state)));
    await(*training.after[i]);
    args.after[i] = training.after[i]->mutable_raw();
  }
  note(step(*type, args, memory_.compute().stream()));
  for (const Tensor* after : training.after) note_written(*after);
  return {};
}

}  // namespace tagflow::devices
