// Element-wise kernels: shapes and memory; the functions are in .cu files.
#include <algorithm>

#include "devices/broadcast.h"
#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/kernel_inputs.h"
#include "devices/kernels/elementwise/elementwise.h"

namespace tagflow::devices {
namespace {

using cuda::Binary;
using cuda::Element;
using cuda::Unary;

std::vector<DataType> all_types() {
  return {DataType::kFloat,    DataType::kDouble, DataType::kHalf,
          DataType::kBFloat16, DataType::kInt32,  DataType::kInt64,
          DataType::kBool};
}

Status launched(const KernelContext& context, cudaError_t result) {
  return cuda_status(result, "launching " + context.node().op());
}

// One input, read in the order of the output.
cuda::ElementwiseArgs of_each_element(const Tensor& x, Tensor& out) {
  cuda::ElementwiseArgs args;
  args.total = x.num_elements();
  if (args.total == 0) return args;
  args.strides[0][0] = 1;
  args.in[0] = operand_of(x);
  args.out = out.mutable_raw();
  return args;
}

class UnaryCudaKernel final : public CudaKernel {
 public:
  UnaryCudaKernel(std::unique_ptr<Kernel> cpu, Unary op, Element type)
      : CudaKernel(std::move(cpu), {}), op_(op), type_(type) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& x = context.input(0);
    TAGFLOW_ASSIGN(Tensor * out, context.forward_or_allocate(0, 0, x.shape()));
    const cuda::ElementwiseArgs args = of_each_element(x, *out);
    if (args.total == 0) return {};
    return launched(context, cuda::unary(op_, type_, args, stream));
  }

 private:
  Unary op_;
  Element type_;
};

// How a binary op treats shapes.
enum class Shapes : uint8_t {
  kBroadcast,
  kAlike,    // they must be the same
  kLenient,  // not equal if shapes do not fit
};

class BinaryCudaKernel final : public CudaKernel {
 public:
  BinaryCudaKernel(std::unique_ptr<Kernel> cpu, Binary op, Element type,
                   Shapes shapes, double parameter)
      : CudaKernel(std::move(cpu), {}),
        op_(op),
        type_(type),
        shapes_(shapes),
        parameter_(parameter) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& x = context.input(0);
    const Tensor& y = context.input(context.num_inputs() - 1);
    if (shapes_ == Shapes::kAlike && !same_dims(x, y))
      return context.fail("the inputs must have one shape, not {} and {}",
                          x.describe(), y.describe());
    const Shape x_shape = x.shape(), y_shape = y.shape();
    const Result<Shape> shape = broadcast_shapes({&x_shape, &y_shape});
    if (!shape.ok()) {
      if (shapes_ != Shapes::kLenient)
        return context.fail("{}", shape.status().message());
      context.set_output(0, Tensor::scalar(op_ == Binary::kNotEqual));
      return {};
    }
    const int last = context.num_inputs() - 1;
    const int reused = x_shape == *shape && x.unique() ? 0 : last;
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(reused, 0, *shape));
    if (out->num_elements() == 0) return {};
    TAGFLOW_ASSIGN(cuda::ElementwiseArgs args,
                   broadcast_args(context, *shape, {&x_shape, &y_shape}));
    args.in[0] = operand_of(x);
    args.in[1] = operand_of(y);
    args.out = out->mutable_raw();
    args.parameter = parameter_;
    return launched(context, cuda::binary(op_, type_, args, stream));
  }

 private:
  Binary op_;
  Element type_;
  Shapes shapes_;
  double parameter_;
};

class CastCudaKernel final : public CudaKernel {
 public:
  CastCudaKernel(std::unique_ptr<Kernel> cpu, Element from, Element to,
                 bool truncates)
      : CudaKernel(std::move(cpu), {}),
        from_(from),
        to_(to),
        truncates_(truncates) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const Tensor& x = context.input(0);
    if (from_ == to_) {
      context.set_output(0, x);
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, x.shape()));
    const cuda::ElementwiseArgs args = of_each_element(x, *out);
    if (args.total == 0) return {};
    return launched(context, cuda::cast(from_, to_, truncates_, args, stream));
  }

 private:
  Element from_, to_;
  bool truncates_;
};

// Sums in groups, if there are more terms than a kernel supports.
class AddNCudaKernel final : public CudaKernel {
 public:
  AddNCudaKernel(std::unique_ptr<Kernel> cpu, Element type)
      : CudaKernel(std::move(cpu), {}), type_(type) {}

  Status enqueue(KernelContext& context, cudaStream_t stream) const override {
    const auto inputs = context.inputs();
    TAGFLOW_RETURN_IF_ERROR(check_addends(context));
    if (inputs.size() == 1) {
      context.set_output(0, context.input(0));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * out,
                   context.forward_or_allocate(0, 0, inputs[0].shape()));
    cuda::SumArgs args;
    args.total = out->num_elements();
    if (args.total == 0) return {};
    args.out = args.so_far = out->mutable_raw();
    const size_t most = cuda::SumArgs::kMaxTerms;
    Tensor wide;
    if (inputs.size() > most && dtype_size(out->dtype()) == 2) {
      TAGFLOW_ASSIGN(wide,
                     context.allocate_temp(DataType::kFloat, out->shape()));
      args.so_far = wide.mutable_raw();
    }
    for (size_t i = 0; i < inputs.size(); i += most) {
      args.count = int(std::min(most, inputs.size() - i));
      for (int k = 0; k < args.count; ++k)
        args.terms[k] = operand_of(inputs[i + size_t(k)]);
      args.continues = i > 0;
      args.ends = i + most >= inputs.size();
      TAGFLOW_RETURN_IF_ERROR(
          launched(context, cuda::sum_terms(type_, args, stream)));
    }
    return {};
  }

 private:
  Element type_;
};

// --- Registering ------------------------------------------------------------

// Those of `types` for which `has` returns true.
template <class Has>
std::vector<DataType> types_with(Has has) {
  std::vector<DataType> types;
  for (const DataType type : all_types())
    if (has(*element_of(type))) types.push_back(type);
  return types;
}

Element input_element(const KernelInfo& info) {
  return *element_of(info.input_dtype(0));
}

void add_unary(KernelRegistry& registry, const char* op, Unary function) {
  TypeLimits limits;
  if (function != Unary::kNot)
    limits = {{"T", types_with([&](Element type) {
                 return cuda::has_unary(function, type);
               })}};
  add_cuda_kernel(
      registry, op, limits,
      [function](const KernelInfo& info, std::unique_ptr<Kernel> cpu)
          -> Result<std::unique_ptr<Kernel>> {
        return std::unique_ptr<Kernel>(std::make_unique<UnaryCudaKernel>(
            std::move(cpu), function, input_element(info)));
      });
}

void add_binary(KernelRegistry& registry, const char* op, Binary function,
                Shapes shapes = Shapes::kBroadcast) {
  TypeLimits limits;
  if (function != Binary::kAnd && function != Binary::kOr)
    limits = {{"T", types_with([&](Element type) {
                 return cuda::has_binary(function, type);
               })}};
  add_cuda_kernel(
      registry, op, limits,
      [function, shapes](const KernelInfo& info, std::unique_ptr<Kernel> cpu)
          -> Result<std::unique_ptr<Kernel>> {
        // Each has a default if the op has it at all.
        const Result<bool> strict = info.attr<bool>("incompatible_shape_error");
        const bool is_lenient = strict.ok() && !*strict;
        const Result<float> alpha = info.attr<float>("alpha");
        return std::unique_ptr<Kernel>(std::make_unique<BinaryCudaKernel>(
            std::move(cpu), function, input_element(info),
            is_lenient ? Shapes::kLenient : shapes,
            alpha.ok() ? double(*alpha) : 0));
      });
}

void register_unary(KernelRegistry& registry) {
  const std::pair<const char*, Unary> kOps[] = {
      {"Neg", Unary::kNegate},
      {"Abs", Unary::kAbsolute},
      {"Sign", Unary::kSign},
      {"Square", Unary::kSquare},
      {"Reciprocal", Unary::kReciprocal},
      {"Inv", Unary::kReciprocal},
      {"Sqrt", Unary::kRoot},
      {"Rsqrt", Unary::kReciprocalRoot},
      {"Floor", Unary::kFloor},
      {"Ceil", Unary::kCeil},
      {"Rint", Unary::kRound},
      {"Round", Unary::kRound},
      {"Exp", Unary::kExp},
      {"Expm1", Unary::kExpm1},
      {"Log", Unary::kLog},
      {"Log1p", Unary::kLog1p},
      {"Tanh", Unary::kTanh},
      {"Sigmoid", Unary::kSigmoid},
      {"Sin", Unary::kSin},
      {"Cos", Unary::kCos},
      {"Erf", Unary::kErf},
      {"Relu", Unary::kRelu},
      {"Relu6", Unary::kRelu6},
      {"Elu", Unary::kElu},
      {"Selu", Unary::kSelu},
      {"Softplus", Unary::kSoftplus},
      {"Softsign", Unary::kSoftsign},
      {"IsNan", Unary::kIsNan},
      {"IsInf", Unary::kIsInf},
      {"IsFinite", Unary::kIsFinite},
      {"LogicalNot", Unary::kNot},
  };
  for (const auto& [op, function] : kOps) add_unary(registry, op, function);
}

void register_binary(KernelRegistry& registry) {
  const std::pair<const char*, Binary> kBroadcast[] = {
      {"AddV2", Binary::kAdd},
      {"Add", Binary::kAdd},
      {"Sub", Binary::kSubtract},
      {"Mul", Binary::kMultiply},
      {"RealDiv", Binary::kDivide},
      {"Div", Binary::kDivide},
      {"FloorDiv", Binary::kFloorDivide},
      {"FloorMod", Binary::kFloorModulo},
      {"Mod", Binary::kTruncateModulo},
      {"TruncateMod", Binary::kTruncateModulo},
      {"DivNoNan", Binary::kDivideNoNan},
      {"MulNoNan", Binary::kMultiplyNoNan},
      {"SquaredDifference", Binary::kSquaredDifference},
      {"Maximum", Binary::kMaximum},
      {"Minimum", Binary::kMinimum},
      {"Pow", Binary::kPower},
      {"Less", Binary::kLess},
      {"LessEqual", Binary::kLessEqual},
      {"Greater", Binary::kGreater},
      {"GreaterEqual", Binary::kGreaterEqual},
      {"Equal", Binary::kEqual},
      {"NotEqual", Binary::kNotEqual},
      {"LogicalAnd", Binary::kAnd},
      {"LogicalOr", Binary::kOr},
  };
  for (const auto& [op, function] : kBroadcast)
    add_binary(registry, op, function);
  const std::pair<const char*, Binary> kAlike[] = {
      {"SigmoidGrad", Binary::kSigmoidGradient},
      {"TanhGrad", Binary::kTanhGradient},
      {"SqrtGrad", Binary::kRootGradient},
      {"RsqrtGrad", Binary::kReciprocalRootGradient},
      {"ReciprocalGrad", Binary::kReciprocalGradient},
      {"InvGrad", Binary::kReciprocalGradient},
      {"ReluGrad", Binary::kReluGradient},
      {"Relu6Grad", Binary::kRelu6Gradient},
      {"EluGrad", Binary::kEluGradient},
      {"SeluGrad", Binary::kSeluGradient},
      {"SoftplusGrad", Binary::kSoftplusGradient},
      {"SoftsignGrad", Binary::kSoftsignGradient},
      {"LeakyReluGrad", Binary::kLeakyRelu},
      {"LeakyRelu", Binary::kLeakyRelu},  // of one input, used as both
  };
  for (const auto& [op, function] : kAlike)
    add_binary(registry, op, function, Shapes::kAlike);
}

}  // namespace

void register_cuda_elementwise_kernels(KernelRegistry& registry) {
  register_unary(registry);
  register_binary(registry);
  std::vector<DataType> castable = all_types();
  castable.insert(castable.end(), {DataType::kInt8, DataType::kUInt8});
  add_cuda_kernel(
      registry, "Cast", {{"SrcT", castable}, {"DstT", castable}},
      [](const KernelInfo& info,
         std::unique_ptr<Kernel> cpu) -> Result<std::unique_ptr<Kernel>> {
        return std::unique_ptr<Kernel>(std::make_unique<CastCudaKernel>(
            std::move(cpu), input_element(info),
            *element_of(info.output_dtype(0)),
            attr_of<bool>(info, "Truncate")));
      });
  add_cuda_kernel(
      registry, "AddN", {{"T", types_with([](Element type) {
                            return cuda::has_binary(Binary::kAdd, type);
                          })}},
      [](const KernelInfo& info,
         std::unique_ptr<Kernel> cpu) -> Result<std::unique_ptr<Kernel>> {
        return std::unique_ptr<Kernel>(std::make_unique<AddNCudaKernel>(
            std::move(cpu), input_element(info)));
      });
}

}  // namespace tagflow::devices
