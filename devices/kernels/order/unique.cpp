// Unique, UniqueV2, UniqueWithCounts, UniqueWithCountsV2, ListDiff.
#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

template <class T>
uint64_t hash_of(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::hash<std::string>()(value);
  } else if constexpr (requires { value.real(); }) {
    return hash_of(value.real()) * 31 + hash_of(value.imag());
  } else {
    // Equal values have equal bits, except the two zeros. All integers and
    // small types fit a double; long ones lose bits, which only causes
    // collisions.
    const double number = double(value) == 0 ? 0.0 : double(value);
    uint64_t bits = std::bit_cast<uint64_t>(number);
    bits = (bits ^ (bits >> 32)) * 0x9e3779b97f4a7c15u;
    return bits ^ (bits >> 29);
  }
}

// Slices of a tensor along one dimension, as items that can be compared.
template <class T>
struct Items {
  const T* data;
  int64_t outer, count, inner;

  const T& element(int64_t item, int64_t o, int64_t i) const {
    return data[(o * count + item) * inner + i];
  }
  uint64_t hash(int64_t item) const {
    uint64_t sum = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        sum = sum * 0x100000001b3u + hash_of(element(item, o, i));
    return sum;
  }
  // As == does: a NaN equals nothing.
  bool equal(int64_t item, const Items& others, int64_t other) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        if (!(element(item, o, i) == others.element(other, o, i))) return false;
    return true;
  }
};

// A hash table of items, which numbers distinct items in the order of their
// first appearance.
template <class T>
class ItemTable {
 public:
  explicit ItemTable(const Items<T>& items) : items_(items) {
    slots_.resize(std::bit_ceil(uint64_t(items.count) * 2 + 2), -1);
  }

  // The number of an item of the table itself.
  int64_t insert(int64_t item) {
    int64_t& slot = slots_[find_slot(items_, item)];
    if (slot < 0) {
      slot = int64_t(firsts_.size());
      firsts_.push_back(item);
    }
    return slot;
  }
  bool contains(const Items<T>& others, int64_t other) const {
    return slots_[find_slot(others, other)] >= 0;
  }
  // The first item of each number.
  const std::vector<int64_t>& firsts() const { return firsts_; }

 private:
  size_t find_slot(const Items<T>& others, int64_t other) const {
    const size_t mask = slots_.size() - 1;
    size_t at = others.hash(other) & mask;
    while (slots_[at] >= 0 &&
           !others.equal(other, items_, firsts_[size_t(slots_[at])]))
      at = (at + 1) & mask;
    return at;
  }

  Items<T> items_;
  std::vector<int64_t> slots_;  // numbers, or -1
  std::vector<int64_t> firsts_;
};

// Stores values as int32 or int64, depending on the output; int32 values fit,
// since sizes were checked.
Status set_indices(KernelContext& context, int output,
                   const std::vector<int64_t>& values) {
  TAGFLOW_ASSIGN(Tensor * tensor,
                 context.allocate_output(output, {int64_t(values.size())}));
  if (tensor->dtype() == DataType::kInt64) {
    std::ranges::copy(values, tensor->mutable_data<int64_t>());
  } else {
    std::ranges::transform(values, tensor->mutable_data<int32_t>(),
                           [](int64_t value) { return int32_t(value); });
  }
  return {};
}

Status check_index_type(const KernelContext& context, int output,
                        int64_t count) {
  if (context.node().output_dtypes()[size_t(output)] == DataType::kInt32 &&
      count > std::numeric_limits<int32_t>::max())
    return context.fail("{} elements are too many for int32 indices", count);
  return {};
}

Status unsupported(const KernelContext& context) {
  return error(Code::kUnimplemented, "[{}] cannot compare elements of type {}",
               context.node().op(), dtype_name(context.input(0).dtype()));
}

// All Uniques: values, the number of each item and, with counts, the
// occurrences of each value. V2 has an axis as input 1, or an empty vector.
class UniqueKernel : public BytesKernel {
 public:
  explicit UniqueKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 5) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    int axis = 0;
    bool has_axis = false;
    if (context.num_inputs() == 2) {
      const Tensor& axes = context.input(1);
      if (axes.rank() != 1 || axes.num_elements() > 1)
        return context.fail("axis must be a vector of at most one, is {}",
                            axes.describe());
      has_axis = axes.num_elements() == 1;
      if (has_axis) {
        TAGFLOW_ASSIGN(axis,
                       checked_axis(context, index_at(axes, 0), input.rank()));
      }
    }
    if (!has_axis && input.rank() != 1)
      return context.fail("x must be a vector, is {}", input.describe());
    TAGFLOW_RETURN_IF_ERROR(check_index_type(context, 1, input.dim(axis)));
    if (input.num_elements() == 0) return run_empty(context, axis);
    Status status;
    const bool known = visit_dtype(input.dtype(), [&]<class T>(TypeTag<T>) {
      status = run<T>(context, axis);
    });
    return known ? std::move(status) : unsupported(context);
  }

 private:
  // Items without elements are equal: there is one at most, however many
  // positions they have.
  static Status run_empty(KernelContext& context, int axis) {
    Shape shape = context.input(0).shape();
    const int64_t count = shape.dim(axis);
    TAGFLOW_ASSIGN(Tensor * numbers, context.allocate_output(1, {count}));
    zero_elements(context, *numbers);
    std::vector<int64_t> counts;
    if (count > 0) counts.push_back(count);
    if (context.num_outputs() == 3)
      TAGFLOW_RETURN_IF_ERROR(set_indices(context, 2, counts));
    shape.set_dim(axis, int64_t(counts.size()));
    return context.allocate_output(0, shape).status();
  }

  template <class T>
  static Status run(KernelContext& context, int axis) {
    const Tensor& input = context.input(0);
    const Shape shape = input.shape();
    const Items<T> items{input.data<T>(), product(shape.dims(), 0, axis),
                         shape.dim(axis),
                         product(shape.dims(), axis + 1, shape.rank())};
    ItemTable<T> table(items);
    std::vector<int64_t> numbers, counts;
    for (int64_t i = 0; i < items.count; ++i) {
      context.check_cancelled();
      numbers.push_back(table.insert(i));
      counts.resize(table.firsts().size(), 0);
      ++counts[size_t(numbers.back())];
    }
    TAGFLOW_RETURN_IF_ERROR(set_indices(context, 1, numbers));
    if (context.num_outputs() == 3)
      TAGFLOW_RETURN_IF_ERROR(set_indices(context, 2, counts));

    const auto& firsts = table.firsts();
    const auto found = int64_t(firsts.size());
    Shape output_shape = shape;
    output_shape.set_dim(axis, found);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, output_shape));
    for (int64_t o = 0; o < items.outer; ++o)
      for (int64_t i = 0; i < found; ++i) {
        context.check_cancelled();
        copy_elements(input,
                      (o * items.count + firsts[size_t(i)]) * items.inner,
                      *output, (o * found + i) * items.inner, items.inner);
      }
    return {};
  }
};

// The values of x that are not in y, and their positions in x.
class ListDiffKernel : public BytesKernel {
 public:
  explicit ListDiffKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 5) {}

  Status compute(KernelContext& context) const override {
    for (int i : {0, 1})
      if (context.input(i).rank() != 1)
        return context.fail("x and y must be vectors, got {}",
                            context.input(i).describe());
    TAGFLOW_RETURN_IF_ERROR(
        check_index_type(context, 1, context.input(0).dim(0)));
    Status status;
    const bool known =
        visit_dtype(context.input(0).dtype(),
                    [&]<class T>(TypeTag<T>) { status = run<T>(context); });
    return known ? std::move(status) : unsupported(context);
  }

 private:
  template <class T>
  static Status run(KernelContext& context) {
    const Tensor& x = context.input(0);
    const Tensor& y = context.input(1);
    const Items<T> wanted{x.data<T>(), 1, x.dim(0), 1};
    const Items<T> removed{y.data<T>(), 1, y.dim(0), 1};
    ItemTable<T> table(removed);
    for (int64_t i = 0; i < removed.count; ++i) {
      context.check_cancelled();
      table.insert(i);
    }
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < wanted.count; ++i) {
      context.check_cancelled();
      if (!table.contains(wanted, i)) kept.push_back(i);
    }
    TAGFLOW_RETURN_IF_ERROR(set_indices(context, 1, kept));
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, {int64_t(kept.size())}));
    for (size_t i = 0; i < kept.size(); ++i)
      output->mutable_data<T>()[i] = x.data<T>()[kept[i]];
    return {};
  }
};

}  // namespace

void register_unique_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"})
    registry.add<UniqueKernel>(op);
  registry.add<ListDiffKernel>("ListDiff");
}

}  // namespace tagflow::devices
