// StepResources: objects that the kernels of one step share through handles,
// such as stacks and tensor arrays.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

#include "graph/handle.h"
#include "graph/tensor.h"

namespace tagflow::devices {

class HostAccess;  // devices/files/host_access.h

// A mutable object that lives for at most one step.
//
// Life cycle: made by a kernel through StepResources::make(); in use as long as
// a token holds its handle; destroyed with the last handle. Handles can be left
// at the end of the step: it was cancelled, the caller fetched one, or the
// object holds its own. Then end() drops the contents.
class StepObject {
 public:
  virtual ~StepObject() = default;
  // For messages: 'stack "s" of float with 3 elements'. Thread-safe.
  virtual std::string describe() const = 0;
  // Drops all contents, and rejects every use from then on. Thread-safe.
  virtual void end() = 0;
};

// The target of a handle to a T.
template <class T>
class StepHandle final : public Resource {
 public:
  explicit StepHandle(std::shared_ptr<T> object) : object_(std::move(object)) {}
  std::string describe() const override { return object_->describe(); }
  T& object() const { return *object_; }

 private:
  const std::shared_ptr<T> object_;
};

// The T of an element of a resource tensor, or null if the element is
// something else. Valid as long as the tensor.
template <class T>
T* step_object(const ResourceHandle& handle) {
  Resource* resource = handle.get();
  if (resource == nullptr || typeid(*resource) != typeid(StepHandle<T>))
    return nullptr;
  return &static_cast<StepHandle<T>*>(resource)->object();
}

// The objects of one step, and their names if they have any. Thread-safe.
class StepResources {
 public:
  // What kernels may reach outside of the process. Null, as at first:
  // everything. REQUIRES, to set it: no kernel of the step runs.
  const HostAccess* host_access() const { return host_access_.get(); }
  void set_host_access(std::shared_ptr<const HostAccess> host) {
    host_access_ = std::move(host);
  }

  // The handle of a new T, a StepObject.
  template <class T, class... Args>
  ResourceHandle make(Args&&... args) {
    auto object = std::make_shared<T>(std::forward<Args>(args)...);
    track(object);
    return ResourceHandle(make_ref_counted<StepHandle<T>>(std::move(object)));
  }

  // Keeps the object alive under a name until the step ends. False if the
  // name is taken.
  bool add_name(std::string name, ResourceHandle handle);
  // Frees the name; no effect if it is not taken.
  void remove_name(std::string_view name);
  // Empty if no object has that name.
  ResourceHandle find(std::string_view name) const;

  // The number of objects that are alive.
  size_t alive() const;
  // Ends every object that is alive, and forgets it. REQUIRES: no kernel of
  // the step runs. Another step may begin afterwards.
  void end();

 private:
  void track(std::weak_ptr<StepObject> object);

  std::shared_ptr<const HostAccess> host_access_;
  // Objects are released outside of it: their contents may hold others.
  mutable std::mutex mutex_;
  // Expired entries are dropped when the list has doubled.
  std::vector<std::weak_ptr<StepObject>> objects_;
  size_t next_sweep_ = 64;
  std::map<std::string, ResourceHandle, std::less<>> names_;
};

}  // namespace tagflow::devices
