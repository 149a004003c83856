// AddSparseToTensorsMap, AddManySparseToTensorsMap,
// TakeManySparseFromTensorsMap: sparse tensors that wait under numbers, so that
// they pass through queues.
#include <mutex>
#include <string>
#include <unordered_map>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/sparse/batch.h"
#include "devices/state/resource_op.h"
#include "devices/state/state_kernel.h"
#include "devices/state/state_kind.h"

namespace tagflow::devices {

namespace {

// Life cycle: made by the first node that names it; ended by a reset of its
// container. Thread-safe.
class SparseTensorsMap final : public StateObject {
 public:
  SparseTensorsMap(std::string name, DataType dtype)
      : name_(std::move(name)), dtype_(dtype) {}

  DataType dtype() const { return dtype_; }
  std::string describe() const override {
    return fmt::format("{} \"{}\" of {}", kSparseTensorsMapKind, name_,
                       dtype_name(dtype_));
  }

  // Writes the numbers of the items, which are new. ResourceExhausted if there
  // would be more than kMostItems.
  Status add(const KernelContext& context, std::vector<SparseItem> items,
             std::span<int64_t> numbers) {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(ended());
    if (int64_t(items_.size() + items.size()) > kMostItems)
      return error(Code::kResourceExhausted,
                   "[{}] {} has {} sparse tensors, and {} is the limit",
                   context.node().op(), describe(), items_.size(), kMostItems);
    items_.reserve(items_.size() + items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      numbers[i] = next_;
      items_.emplace(next_++, std::move(items[i]));
    }
    return {};
  }
  // The items of these numbers. InvalidArgument if there is none of a number.
  Result<std::vector<SparseItem>> find(const KernelContext& context,
                                       std::span<const int64_t> numbers) const {
    const std::lock_guard lock(mutex_);
    TAGFLOW_RETURN_IF_ERROR(ended());
    std::vector<SparseItem> found;
    for (const int64_t number : numbers) {
      const auto at = items_.find(number);
      if (at == items_.end())
        return context.fail("{} has no sparse tensor of number {}", describe(),
                            number);
      found.push_back(at->second);
    }
    return found;
  }
  // False, and removes nothing, if there is none of a number any more.
  bool remove(std::span<const int64_t> numbers) {
    std::vector<Items::node_type> removed;  // destroyed without the lock
    removed.reserve(numbers.size());
    const std::lock_guard lock(mutex_);
    for (const int64_t number : numbers) {
      removed.push_back(items_.extract(number));
      if (!removed.back().empty()) continue;
      removed.pop_back();
      for (Items::node_type& item : removed) items_.insert(std::move(item));
      return false;
    }
    return true;
  }

 protected:
  void on_end(const Status&) override {
    Items dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(items_);
  }

 private:
  using Items = std::unordered_map<int64_t, SparseItem>;

  const std::string name_;
  const DataType dtype_;
  mutable std::mutex mutex_;  // guards the below
  Items items_;
  int64_t next_ = 0;
};

// A kernel on the map that its attributes name, with values of their type.
class MapKernel : public SparseKernel {
 public:
  MapKernel(const KernelInfo& info, const char* type)
      : resource_(info), dtype_(attr_of<DataType>(info, type)) {}

 protected:
  Result<Ref<SparseTensorsMap>> find(const KernelContext& context) const {
    TAGFLOW_ASSIGN(
        const Ref<StateObject> object,
        resource_.find_or_make(context, [&]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(
              make_ref_counted<SparseTensorsMap>(resource_.key().name, dtype_));
        }));
    Ref<SparseTensorsMap> map(static_cast<SparseTensorsMap*>(object.get()));
    if (map->dtype() == dtype_) return map;
    return context.fail("{} is not of {}", map->describe(), dtype_name(dtype_));
  }
  DataType dtype() const { return dtype_; }

 private:
  const ResourceOp resource_;
  const DataType dtype_;
};

template <bool kIsMany>
class AddToMapKernel final : public MapKernel {
 public:
  explicit AddToMapKernel(const KernelInfo& info) : MapKernel(info, "T") {}

  Status compute(KernelContext& context) const override {
    std::vector<SparseItem> items;
    Shape shape;
    if constexpr (kIsMany) {
      TAGFLOW_ASSIGN(items, sparse_rows(context));
      shape = Shape{int64_t(items.size())};
    } else {
      TAGFLOW_RETURN_IF_ERROR(sparse_input(context).status());
      items = {{context.input(0), context.input(1), context.input(2)}};
    }
    TAGFLOW_ASSIGN(const auto map, find(context));
    TAGFLOW_ASSIGN(Tensor * numbers, context.allocate_output(0, shape));
    const Commit commit = context.commit();
    if (!commit) return too_late(context);
    return map->add(context, std::move(items),
                    numbers->mutable_flat<int64_t>());
  }
};

class TakeFromMapKernel final : public MapKernel {
 public:
  explicit TakeFromMapKernel(const KernelInfo& info)
      : MapKernel(info, "dtype") {}

  Status compute(KernelContext& context) const override {
    const Tensor& numbers = context.input(0);
    if (numbers.rank() != 1)
      return context.fail("sparse_handles must be a vector, got {}",
                          numbers.describe());
    TAGFLOW_ASSIGN(const auto map, find(context));
    TAGFLOW_ASSIGN(const auto items,
                   map->find(context, numbers.flat<int64_t>()));
    TAGFLOW_RETURN_IF_ERROR(
        set_batch(context, items, numbers.shape(), dtype()));
    const Commit commit = context.commit();
    if (!commit) return too_late(context);
    if (map->remove(numbers.flat<int64_t>())) return {};
    return context.fail("{} has not that many sparse tensors of these numbers",
                        map->describe());
  }
};

}  // namespace

void register_sparse_tensors_map_kernels(KernelRegistry& registry) {
  registry.add<AddToMapKernel<false>>("AddSparseToTensorsMap");
  registry.add<AddToMapKernel<true>>("AddManySparseToTensorsMap");
  registry.add<TakeFromMapKernel>("TakeManySparseFromTensorsMap");
}

}  // namespace tagflow::devices
