// EmptyTensorMap, TensorMap*: values by keys; both are tensors.
#include <map>
#include <utility>

#include "devices/counted_growth.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/containers/variant_arithmetic.h"
#include "devices/tensor_rows.h"
#include "devices/thread_activity.h"

namespace tagflow::devices {

namespace {

// A key as text, from its type, shape and elements: equal keys have equal
// texts.
std::string text_of(const Tensor& key) {
  std::string text = key.describe();
  text += '\0';
  if (key.dtype() != DataType::kString) {
    text.append(static_cast<const char*>(key.raw()), key.bytes());
    return text;
  }
  for (const std::string& part : key.flat<std::string>())
    text += fmt::format("{}:{}", part.size(), part);
  return text;
}

Status check_key(const KernelContext& context) {
  const DataType dtype = context.input(1).dtype();
  if (is_plain(dtype) || dtype == DataType::kString) return {};
  return context.fail("a map cannot have keys of {}", dtype_name(dtype));
}

// Sorted by these texts, an arbitrary order.
class TensorMap final : public ArithmeticValue {
 public:
  using Entry = std::pair<Tensor, Tensor>;  // key, value
  using Entries = std::map<std::string, Entry>;

  TensorMap() = default;
  // A map with the keys of `other`, and with these entries.
  TensorMap(const TensorMap& other, Entries entries)
      : ArithmeticValue(other),
        entries_(std::move(entries)),
        text_bytes_(other.text_bytes_) {}
  TensorMap(const TensorMap& other) : TensorMap(other, other.entries_) {}
  ~TensorMap() override {
    const FreedElements freed("map", entries_.size());
    for (auto& [text, entry] : entries_)
      release_nested(std::move(entry.second));
    entries_.clear();
  }

  const Entries& entries() const { return entries_; }
  void insert_or_assign(std::string text, Entry entry) {
    const size_t bytes = text.size();
    if (entries_.insert_or_assign(std::move(text), std::move(entry)).second)
      text_bytes_ += bytes;
  }
  void erase(const std::string& text) {
    if (entries_.erase(text) > 0) text_bytes_ -= text.size();
  }
  size_t own_bytes() const override {
    return sizeof(*this) + text_bytes_ +
           entries_.size() * (kNodeBytes + sizeof(Entries::value_type));
  }
  std::string describe() const override {
    return fmt::format("TensorMap of {}", entries_.size());
  }

  Result<Variant> zeros_like(const KernelContext& context,
                             int depth) const override {
    Entries zeros = entries_;
    for (auto& [text, entry] : zeros) {
      TAGFLOW_ASSIGN(entry.second,
                     zeros_like_tensor(context, entry.second, depth + 1));
    }
    return Variant(make_ref_counted<TensorMap>(*this, std::move(zeros)));
  }

  // An entry that only one map has stays as it is.
  Result<Variant> add(const KernelContext& context, const VariantValue& other,
                      int depth) const override {
    const auto* map = dynamic_cast<const TensorMap*>(&other);
    if (map == nullptr)
      return context.fail("cannot add {} and {}", describe(), other.describe());
    auto sum = make_ref_counted<TensorMap>(*this);
    for (const auto& [text, entry] : map->entries_) {
      const auto it = sum->entries_.find(text);
      if (it == sum->entries_.end()) {
        sum->insert_or_assign(text, entry);
        continue;
      }
      TAGFLOW_ASSIGN(it->second.second, add_nested(context, it->second.second,
                                                   entry.second, depth + 1));
    }
    return Variant(std::move(sum));
  }

 private:
  Entries entries_;
  size_t text_bytes_ = 0;  // of all keys as text
};

Result<const TensorMap*> map_input(const KernelContext& context) {
  return value_input<TensorMap>(context, 0, "tensor map");
}

// The entry of the key in input 1; null if it does not exist.
Result<const TensorMap::Entry*> find_entry(const KernelContext& context) {
  TAGFLOW_ASSIGN(const TensorMap* map, map_input(context));
  TAGFLOW_RETURN_IF_ERROR(check_key(context));
  const auto it = map->entries().find(text_of(context.input(1)));
  return it == map->entries().end() ? nullptr : &it->second;
}

Status no_such_key(const KernelContext& context) {
  return context.fail("the map has no key {}", context.input(1).to_string());
}

class EmptyMapKernel final : public CheapKernel {
 public:
  explicit EmptyMapKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    return new_value_output<TensorMap>(context, 0).status();
  }
};

class MapSizeKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;
  explicit MapSizeKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorMap* map, map_input(context));
    context.set_output(0, Tensor::scalar(int32_t(map->entries().size())));
    return {};
  }
};

class MapLookupKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;
  explicit MapLookupKernel(const KernelInfo& info)
      : dtype_(info.output_dtype(0)) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* entry, find_entry(context));
    if (entry == nullptr) return no_such_key(context);
    const Tensor& value = entry->second;
    if (value.dtype() != dtype_)
      return context.fail("the value of key {} is {}, not of {}",
                          context.input(1).to_string(), value.describe(),
                          dtype_name(dtype_));
    context.set_output(0, value);
    return {};
  }

 private:
  const DataType dtype_;
};

class MapHasKeyKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;
  explicit MapHasKeyKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* entry, find_entry(context));
    context.set_output(0, Tensor::scalar(entry != nullptr));
    return {};
  }
};

// In place if nobody else has the map, else in a copy.
class MapInsertKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;
  explicit MapInsertKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorMap* map, map_input(context));
    TAGFLOW_RETURN_IF_ERROR(check_key(context));
    if (int64_t(map->entries().size()) >= kMaxContainerElements)
      return error(Code::kResourceExhausted, "[{}] the map has {} entries",
                   context.node().op(), map->entries().size());
    TAGFLOW_ASSIGN(TensorMap * changed,
                   changed_value_output<TensorMap>(context, 0, 0));
    changed->insert_or_assign(
        text_of(context.input(1)),
        TensorMap::Entry(context.input(1), context.input(2)));
    return {};
  }
};

class MapEraseKernel final : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;
  explicit MapEraseKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const auto* entry, find_entry(context));
    if (entry == nullptr) return no_such_key(context);
    TAGFLOW_ASSIGN(TensorMap * changed,
                   changed_value_output<TensorMap>(context, 0, 0));
    changed->erase(text_of(context.input(1)));
    return {};
  }
};

class MapStackKeysKernel final : public BytesKernel {
 public:
  static constexpr bool kTakesHandles = true;
  explicit MapStackKeysKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs), dtype_(info.output_dtype(0)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const TensorMap* map, map_input(context));
    if (map->entries().empty())
      return context.fail("the map has no keys that could be stacked");
    std::vector<Tensor> keys;
    for (const auto& [text, entry] : map->entries()) {
      const Tensor& key = entry.first;
      if (key.dtype() != dtype_ ||
          (!keys.empty() && key.shape() != keys[0].shape()))
        return context.fail("keys {} and {} cannot be stacked as {}",
                            keys.empty() ? key.describe() : keys[0].describe(),
                            key.describe(), dtype_name(dtype_));
      keys.push_back(key);
    }
    TAGFLOW_ASSIGN(context.output(0),
                   stack_rows(context, dtype_, keys, keys[0].shape()));
    return {};
  }

 private:
  double work_bytes(const KernelContext& context) const override {
    const auto map = map_input(context);
    return map.ok() ? 64 * double((*map)->entries().size()) : 0;
  }

  const DataType dtype_;
};

}  // namespace

void register_tensor_map_kernels(KernelRegistry& registry) {
  registry.add<EmptyMapKernel>("EmptyTensorMap");
  registry.add<MapSizeKernel>("TensorMapSize");
  registry.add<MapLookupKernel>("TensorMapLookup");
  registry.add<MapHasKeyKernel>("TensorMapHasKey");
  registry.add<MapInsertKernel>("TensorMapInsert");
  registry.add<MapEraseKernel>("TensorMapErase");
  registry.add<MapStackKeysKernel>("TensorMapStackKeys");
}

}  // namespace tagflow::devices
