// ResourceOp: the common part of the ops that make resources.
#pragma once

#include <mutex>
#include <string>

#include "devices/kernel.h"
#include "devices/state/resource_manager.h"

namespace tagflow::devices {

// The value of the attribute `shared_name` that requests a resource without a
// name, as TensorFlow 2 writes it. An op whose name begins with "Anonymous"
// needs no such value.
inline constexpr std::string_view kAnonymousName =
    "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

// Finds the resource that a node names by its attributes `container` and
// `shared_name`, or by its own name. Caches it: the next call needs no lookup.
// Thread-safe.
class ResourceOp {
 public:
  explicit ResourceOp(const KernelInfo& info);

  const ResourceKey& key() const { return key_; }
  bool is_anonymous() const { return is_anonymous_; }
  // The resource; made by `make` if it does not exist, and each time if
  // it is anonymous: then it counts in the memory of the kernel.
  // FailedPrecondition outside of a session.
  Result<Ref<StateObject>> find_or_make(
      const KernelContext& context, const ResourceManager::Make& make) const;
  // Sets output 0 to a handle of this resource, a scalar.
  Status set_handle(KernelContext& context,
                    const ResourceManager::Make& make) const;

 private:
  ResourceKey key_;
  bool is_anonymous_ = false;
  mutable std::mutex mutex_;  // guards the below
  mutable Ref<StateObject> known_;
  mutable const ResourceManager* manager_ = nullptr;  // its manager
};

// The state of the session. FailedPrecondition outside of one.
Result<ResourceManager*> state_of(const KernelContext& context);

// The key of a node's resource, from its op, its attributes and its name.
ResourceKey resource_key(const graph::Node& node);
ResourceKey resource_key(const graph::NodeDef& node);

// Whether the node makes a resource that has a key, and outputs it.
bool makes_resource(const graph::Node& node);

}  // namespace tagflow::devices
