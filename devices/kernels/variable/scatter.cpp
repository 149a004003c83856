// Updates of some rows of a variable: Scatter*, ScatterNd* and their resource
// versions.
#include "devices/kernels/array/scatter.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "devices/copy.h"
#include "devices/kernels/variable/rows.h"
#include "devices/kernels/variable/state_inputs.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

// The position of element i of a tensor, as "1,0".
std::string element_position(const Tensor& tensor, int64_t i) {
  std::string text;
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    text =
        fmt::format("{}{}{}", i % tensor.dim(d), text.empty() ? "" : ",", text);
    i /= tensor.dim(d);
  }
  return text;
}

}  // namespace

Result<Tensor> row_numbers(KernelContext& context, const Tensor& indices,
                           int64_t limit) {
  TAGFLOW_ASSIGN(Tensor numbers, as_int64(context, indices));
  const auto flat = numbers.flat<int64_t>();
  const auto bad = std::ranges::find_if(
      flat, [limit](int64_t i) { return i < 0 || i >= limit; });
  if (bad != flat.end())
    return context.fail("indices[{}] = {} is outside [0, {})",
                        element_position(indices, bad - flat.begin()), *bad,
                        limit);
  return numbers;
}

namespace {

// As scatter_slices(), for strings of a variable: these need memory as they are
// written. So the slices are changed aside first, and an error changes none.
Status scatter_strings(KernelContext& context, const Tensor& numbers,
                       int64_t size, const Tensor& updates, Combine combine,
                       Tensor& target) {
  std::unordered_map<int64_t, int64_t> place_of;
  std::vector<int64_t> changed;  // numbers, each once
  TAGFLOW_ASSIGN(Tensor places,
                 context.allocate_temp(DataType::kInt64, numbers.shape()));
  auto* place = places.mutable_data<int64_t>();
  for (const int64_t number : numbers.flat<int64_t>()) {
    if (number < 0) {  // is ignored
      *place++ = number;
      continue;
    }
    const auto [at, is_new] =
        place_of.try_emplace(number, int64_t(changed.size()));
    if (is_new) changed.push_back(number);
    *place++ = at->second;
  }
  TAGFLOW_ASSIGN(Tensor aside, Tensor::allocate(DataType::kString,
                                                {int64_t(changed.size()), size},
                                                *target.buffer()->allocator));
  if (combine != Combine::kAssign)
    for (size_t i = 0; i < changed.size(); ++i)
      copy_elements(target, changed[i] * size, aside, int64_t(i) * size, size);
  TAGFLOW_RETURN_IF_ERROR(
      scatter_slices(context, places, size, updates, combine, aside));
  for (size_t i = 0; i < changed.size(); ++i)
    exchange_strings(aside, int64_t(i) * size, target, changed[i] * size, size);
  return {};
}

class ScatterKernel : public UpdateKernel {
 public:
  explicit ScatterKernel(const KernelInfo& info)
      : dtype_(info.input_dtype(2)), combine_(combine_of(info.node().op())) {}

  Status claim(const KernelContext& context, StateClaim& claim) const final {
    return claim_variable(context, 0, StateLock::Mode::kExclusive, claim);
  }
  double cost(const KernelContext& context) const final {
    constexpr double kNanosecondsPerIndex = 3, kNanosecondsPerByte = 0.2;
    const Tensor& updates = context.input(2);
    const auto count = double(context.input(1).num_elements());
    const double bytes = updates.is_scalar()
                             ? count * slice_bytes_hint(context, 0, 1)
                             : double(updates.bytes());
    return kNanosecondsPerIndex * count + kNanosecondsPerByte * bytes;
  }

 protected:
  Status update(KernelContext& context) const final {
    TAGFLOW_ASSIGN(Variable * variable,
                   initialized_variable(context, 0, dtype_));
    const Shape shape = variable->value().shape();
    TAGFLOW_ASSIGN(const Tensor numbers, checked_numbers(context, *variable));
    const Tensor& updates = context.input(2);
    TAGFLOW_RETURN_IF_ERROR(check_divisors(context, updates));
    const int depth = this->depth(context.input(1));
    const int64_t size = product(shape.dims(), depth, shape.rank());
    if (numbers.num_elements() > 0 && size > 0) {
      TAGFLOW_ASSIGN(Tensor * target, variable->change_rows(context));
      TAGFLOW_RETURN_IF_ERROR(dtype_ == DataType::kString
                                  ? scatter_strings(context, numbers, size,
                                                    updates, combine_, *target)
                                  : scatter_slices(context, numbers, size,
                                                   updates, combine_, *target));
    }
    pass_reference_on(context);
    return {};
  }

 private:
  // The slices to be changed, checked to be in range and to fit the updates.
  virtual Result<Tensor> checked_numbers(KernelContext& context,
                                         const Variable& variable) const = 0;
  // The number of dimensions of the variable that are indexed.
  virtual int depth(const Tensor& indices) const = 0;

  // Integers cannot be divided by zero.
  Status check_divisors(const KernelContext& context,
                        const Tensor& updates) const {
    if (combine_ != Combine::kDivide) return {};
    int64_t zero = -1;
    visit_integer(dtype_, [&]<class T>(TypeTag<T>) {
      const auto values = updates.flat<T>();
      const auto found = std::ranges::find(values, T(0));
      if (found != values.end()) zero = found - values.begin();
    });
    if (zero < 0) return {};
    return context.fail("integer division by zero: updates[{}] is 0",
                        element_position(updates, zero));
  }

  const DataType dtype_;
  const Combine combine_;
};

// Each index selects a row.
class ScatterRowsKernel final : public ScatterKernel {
 public:
  using ScatterKernel::ScatterKernel;

 private:
  Result<Tensor> checked_numbers(KernelContext& context,
                                 const Variable& variable) const override {
    const Tensor& indices = context.input(1);
    const Tensor& updates = context.input(2);
    const Shape shape = variable.value().shape();
    if (shape.rank() < 1) return checked_row(context, variable);
    if (!updates.is_scalar()) {
      Shape wanted = indices.shape();
      for (int i = 1; i < shape.rank(); ++i) wanted.add_dim(shape.dim(i));
      if (updates.shape() != wanted)
        return context.fail(
            "updates {} are not a scalar, and should be {} for indices {} into "
            "{}, whose value is of shape {}",
            updates.describe(), wanted.to_string(), indices.describe(),
            variable.describe(), shape.to_string());
    }
    return row_numbers(context, indices, shape.dim(0));
  }
  // A scalar resource is one row, as in TensorFlow; a scalar reference has
  // none.
  Result<Tensor> checked_row(KernelContext& context,
                             const Variable& variable) const {
    if (context.node().input_dtypes()[0] != DataType::kResource)
      return context.fail("{} is a scalar, which has no rows",
                          variable.describe());
    if (!context.input(2).is_scalar())
      return context.fail("{} is a scalar, and so must updates be, not {}",
                          variable.describe(), context.input(2).describe());
    return row_numbers(context, context.input(1), 1);
  }
  int depth(const Tensor&) const override { return 1; }
};

// Each vector of indices selects a slice.
class ScatterVectorsKernel final : public ScatterKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const BadIndices policy, bad_indices_policy(info));
    return std::unique_ptr<Kernel>(new ScatterVectorsKernel(info, policy));
  }

 private:
  ScatterVectorsKernel(const KernelInfo& info, BadIndices policy)
      : ScatterKernel(info), policy_(policy) {}

  Result<Tensor> checked_numbers(KernelContext& context,
                                 const Variable& variable) const override {
    const Tensor& indices = context.input(1);
    const Shape shape = variable.value().shape();
    if (shape.rank() < 1)
      return context.fail("{} is a scalar, which has no slices",
                          variable.describe());
    TAGFLOW_RETURN_IF_ERROR(
        check_updates(context, indices, context.input(2), shape));
    return slice_numbers(context, indices, shape, policy_);
  }
  int depth(const Tensor& indices) const override {
    return int(indices.dim(indices.rank() - 1));
  }

  const BadIndices policy_;
};

}  // namespace

void register_state_scatter_kernels(KernelRegistry& registry) {
  for (const char* kind : {"", "Resource"}) {
    for (const char* what :
         {"Update", "Add", "Sub", "Mul", "Div", "Min", "Max"})
      registry.add<ScatterRowsKernel>(fmt::format("{}Scatter{}", kind, what));
    for (const char* what : {"Update", "Add", "Sub", "Min", "Max"})
      registry.add<ScatterVectorsKernel>(
          fmt::format("{}ScatterNd{}", kind, what));
  }
}

}  // namespace tagflow::devices
