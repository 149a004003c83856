// ResourceManager: what outlives a step: variables, queues, tables, readers.
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
#include "graph/status.h"

namespace tagflow::devices {

// Note [State]
// State lives in a ResourceManager, which a session owns or shares with others.
// There a resource has a name, within its container and its kind: a variable
// and a queue may have the same. Handles refer to the resource itself, by a
// counted reference: to use one costs no lookup. So a handle from before a
// reset means a resource that has *ended*, and says so when it is used.
//
// A resource has a device, that of the node that made it first, and its
// contents are in the memory of that. Placement asks for it, so that nodes of
// other signatures come to be there, too (actors/plan/state_homes.h).
//
// What has no name of its own has that of its node, as it was before functions
// were put in the place of their calls: all calls of a function share it. An
// *anonymous* resource has no name, is found by nobody, and ends with its last
// handle.

// A mutable object that outlives a step. Thread-safe.
class StateObject : public Resource {
 public:
  // Lets go of its contents; what waits in it ends with `reason`, and so does
  // every later use. The first reason stays.
  void end(Status reason);
  // OK, or why it has ended.
  Status ended() const;
  bool has_ended() const { return ended_.load(std::memory_order_acquire); }

 protected:
  // Called once, by end(), which has marked it as ended.
  virtual void on_end(const Status& reason) = 0;

 private:
  std::atomic<bool> ended_{false};
  mutable std::mutex mutex_;  // guards the below
  Status reason_;
};

// What a resource is found by. The kind is as kind_of() says (state_kind.h); an
// empty container is the one named "".
struct ResourceKey {
  std::string container;
  std::string kind;
  std::string name;
  auto operator<=>(const ResourceKey&) const = default;
  // 'variable "w"', with the container where that has a name.
  std::string describe() const;
  // The name; where the container has one, that and a slash before it.
  std::string path() const;
};

// Thread-safe.
class ResourceManager {
 public:
  using Make = std::function<Result<Ref<StateObject>>()>;

  ResourceManager() = default;
  // Ends all, as reset() does.
  ~ResourceManager();
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // The resource of that key; what `make` gives where there is none. It is made
  // once, however many ask at the same time.
  Result<Ref<StateObject>> find_or_make(const ResourceKey& key,
                                        const Make& make);
  // Null where there is none.
  Ref<StateObject> find(const ResourceKey& key) const;
  // Takes it out of the table, and ends it. False where there is none.
  bool remove(const ResourceKey& key, Status reason);
  // Empties the containers, in all kinds: "" is the default one. What waits in
  // them ends as Cancelled.
  void reset(std::span<const std::string> containers);
  // Calls `visit` with each, in the order of their keys. It must not call this.
  void for_each(
      const std::function<void(const ResourceKey&, StateObject&)>& visit) const;
  size_t size() const;

  // --- Homes ---
  // By resource, the device that has it, or is to have it: its home. The first
  // claim of a home stays, beyond a reset, since what was placed by it does.
  using Homes = std::map<ResourceKey, std::string>;
  struct HomeClaim {
    ResourceKey key;
    std::string device;
    // Resources that are not claimed, but whose home, where they have one, must
    // be the same device.
    std::span<const ResourceKey> tied;
  };
  // All homes as of one moment.
  Homes homes() const;
  // Gives all of them their homes, or none. False where one of them, or what is
  // tied to it, had another home before.
  bool claim_homes(std::span<const HomeClaim> claims);

 private:
  struct Entry {
    Ref<StateObject> object;  // null: only its home is known
    std::string home;
  };
  using Table = std::map<ResourceKey, Entry>;
  // REQUIRES: mutex_ is held.
  bool may_have(const ResourceKey& key, const std::string& home) const;

  mutable std::mutex mutex_;  // guards the table; objects end outside of it
  Table table_;
};

// The T that a handle means, or null where it means something else. Valid for
// as long as the handle.
template <class T>
T* state_object(const ResourceHandle& handle) {
  Resource* resource = handle.get();
  if (resource == nullptr || typeid(*resource) != typeid(T)) return nullptr;
  return static_cast<T*>(resource);
}

}  // namespace tagflow::devices
