// ResourceManager: state that outlives a step, as variables and queues.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "graph/handle.h"
#include "graph/memory_charge.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// Note [State]
// State is kept in a ResourceManager, which a session owns or shares with
// others. There a resource has a name, within its container and its kind: a
// variable and a queue may have the same name. Handles refer to the resource
// itself, by a counted reference: using one needs no lookup. So a handle from
// before a reset refers to a resource that has *ended*, and its use is an
// error.
//
// A resource has a device, that of the node that made it first, and its
// contents are in the memory of that device. Placement looks it up, so that
// nodes of other signatures are placed there, too (actors/plan/state_homes.h).
//
// A resource without a name of its own has the name of its node from before
// functions were inlined: all calls of a function share it. An *anonymous*
// resource has no name, cannot be looked up, and ends with its last handle.

// The key of a resource. kind_of() (state_kind.h) gives the kind; an empty
// container is the one named "".
struct ResourceKey {
  std::string container;
  std::string kind;
  std::string name;
  auto operator<=>(const ResourceKey&) const = default;
  // 'variable "w"', with the container if that has a name.
  std::string describe() const;
  // The name; if the container has a name, that and a slash before it.
  std::string path() const;
};

// A mutable object that outlives a step. Thread-safe.
class StateObject : public Resource {
 public:
  // Drops its contents; operations that wait in it end with `reason`, and so
  // does every later use. The first reason stays.
  void end(Status reason);
  // OK, or the reason why it has ended.
  Status ended() const;
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }
  // Its place in its manager; without a name if it is anonymous, or being made.
  const ResourceKey& key() const { return key_; }
  // Counts the object's own memory as long as it lives: that of an anonymous
  // one, of which a step may make any number. REQUIRES: nobody else uses it.
  void count_as(MemoryCharge charge) { charge_ = std::move(charge); }

 protected:
  // Called once, by end(), which has marked it as ended.
  virtual void on_end(const Status& reason) = 0;

 private:
  friend class ResourceManager;  // which sets the key before others see it

  ResourceKey key_;
  MemoryCharge charge_;
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;  // guards the below
  Status reason_;
};

// Thread-safe.
class ResourceManager {
 public:
  using Make = std::function<Result<Ref<StateObject>>()>;

  ResourceManager() = default;
  // Ends all resources, as reset() does.
  ~ResourceManager();
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // The resource of that key; if it does not exist, `make` makes it, once even
  // for concurrent calls.
  // Then `restore` gets what restore_later() left for it; after an error of it,
  // the resource does not exist. Without `restore`, that stays.
  using Restore = std::function<Status(StateObject&, const Tensor& saved)>;
  Result<Ref<StateObject>> find_or_make(const ResourceKey& key,
                                        const Make& make,
                                        const Restore& restore = nullptr);
  // Removes the resource, and keeps the contents for the next one of the key:
  // Note [Saved contents] in devices/state/saved_contents.h.
  void restore_later(const ResourceKey& key, Tensor saved);
  // What restore_later() has left, and no resource has got yet.
  std::vector<Tensor> left_to_restore() const;
  // Null if it does not exist.
  Ref<StateObject> find(const ResourceKey& key) const;
  // Removes it from the table, and ends it. False if it does not exist.
  bool remove(const ResourceKey& key, Status reason);
  // Empties the containers, of all kinds: "" is the default one. Operations
  // that wait in them end as Cancelled. Saved contents go, too.
  void reset(std::span<const std::string> containers);
  // Calls `visit` with each, in the order of their keys. It must not call this.
  void for_each(
      const std::function<void(const ResourceKey&, StateObject&)>& visit) const;
  size_t size() const;

  // --- Homes ---
  // The home of a resource is the device that has it or will have it. The first
  // claim stays, even after a reset, since placements depend on it.
  using Homes = std::map<ResourceKey, std::string>;
  struct HomeRequest {
    ResourceKey key;
    std::string device;
    // Resources that are not claimed; but if they have a home, it must be the
    // same device.
    std::span<const ResourceKey> tied;
  };
  // A snapshot of all homes.
  Homes homes() const;
  // Sets all of the homes, or none. False if one of the resources, or one
  // tied to it, had another home before.
  bool request_homes(std::span<const HomeRequest> claims);

 private:
  struct Entry {
    Ref<StateObject> object;  // null: only its home is known
    Tensor saved;             // of the next object, if it is valid
    std::string home;
  };
  using Table = std::map<ResourceKey, Entry>;
  // REQUIRES: mutex_ is held.
  bool may_have(const ResourceKey& key, const std::string& home) const;

  mutable std::mutex mutex_;  // guards the table; objects end outside of it
  Table table_;
};

// The T of a handle, or null if it refers to something else. Valid as long
// as the handle.
template <class T>
T* state_object(const ResourceHandle& handle) {
  Resource* resource = handle.get();
  if (resource == nullptr || typeid(*resource) != typeid(T)) return nullptr;
  return static_cast<T*>(resource);
}

}  // namespace tagflow::devices
