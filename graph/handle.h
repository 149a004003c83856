// Elements of resource and variant tensors: shared handles to objects.
#pragma once

#include <string>
#include <type_traits>
#include <typeinfo>

#include "graph/memory_charge.h"
#include "graph/ref.h"

namespace tagflow {

// The object that a resource handle points to: a variable, a queue, ... Copies
// of a handle point to the same object.
class Resource : public RefCounted {
 public:
  // For messages: 'variable "w" (float[3])'.
  virtual std::string describe() const = 0;
};

// An element of a tensor of type resource.
class ResourceHandle {
 public:
  ResourceHandle() = default;
  explicit ResourceHandle(Ref<Resource> resource)
      : resource_(std::move(resource)) {}
  // Null for an empty handle.
  Resource* get() const { return resource_.get(); }

 private:
  Ref<Resource> resource_;
};

// A value whose type only its ops know: a tensor list, an optional, a
// persistent stack. Immutable once it is shared.
class VariantValue : public RefCounted {
 public:
  // Whether such values can be added, and how. Only the base class of the
  // values of a kind passes its kind to the constructor, so a check of the kind
  // suffices before a cast to that class.
  enum class Kind : uint8_t { kOther, kArithmetic, kGradient };

  Kind kind() const { return kind_; }
  // "TensorList[3]", for messages.
  virtual std::string describe() const = 0;
  // The bytes of the host's memory that it takes beside the buffers of tensors,
  // without those of values in it.
  virtual size_t own_bytes() const { return 0; }
  // Counts own_bytes() in the memory of `allocator`. False if that would exceed
  // its limit. REQUIRES: nobody else holds the value.
  bool settle(Allocator& allocator) {
    return charge_.set(allocator, own_bytes());
  }

 protected:
  explicit VariantValue(Kind kind = Kind::kOther) : kind_(kind) {}
  // For copies, which take as much memory. Throws a StatusException if that
  // would exceed a limit.
  VariantValue(const VariantValue& other)
      : RefCounted(), kind_(other.kind_), charge_(other.charge_) {}
  // Counts what `charge` counts, and nothing else. REQUIRES: as for settle().
  void count_as(MemoryCharge charge) { charge_ = std::move(charge); }

 private:
  const Kind kind_;
  MemoryCharge charge_;
};

// An element of a tensor of type variant.
class Variant {
 public:
  Variant() = default;
  explicit Variant(Ref<VariantValue> value) : value_(std::move(value)) {}
  // Null for an empty variant.
  VariantValue* get() const { return value_.get(); }
  // The value as a T; null if it has another type.
  template <class T>
  T* get_if() const {
    // Equals dynamic_cast for a final class, but is several times faster.
    if constexpr (std::is_final_v<T>) {
      VariantValue* const value = value_.get();
      return value != nullptr && typeid(*value) == typeid(T)
                 ? static_cast<T*>(value)
                 : nullptr;
    } else {
      return dynamic_cast<T*>(value_.get());
    }
  }

 private:
  Ref<VariantValue> value_;
};

}  // namespace tagflow
