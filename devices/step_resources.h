// StepResources: what the kernels of one step share through handles, such as
// stacks and tensor arrays.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "graph/handle.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// A mutable object that lives for at most one step.
//
// Life cycle: made by a kernel through StepResources::make(); in use for as
// long as a token holds its handle; gone with the last one. Where handles are
// left at the end of the step - it was cancelled, the caller fetched one, the
// object holds its own - end() takes the contents.
class StepObject {
 public:
  virtual ~StepObject() = default;
  // For messages: 'stack "s" of float with 3 elements'. Thread-safe.
  virtual std::string describe() const = 0;
  // Lets go of all contents, and refuses every use from then on. Thread-safe.
  virtual void end() = 0;
};

// What a handle to a T points to.
template <class T>
class StepHandle final : public Resource {
 public:
  explicit StepHandle(std::shared_ptr<T> object) : object_(std::move(object)) {}
  std::string describe() const override { return object_->describe(); }
  T& object() const { return *object_; }

 private:
  const std::shared_ptr<T> object_;
};

// The T that an element of a resource tensor means, or null where that is
// something else. Valid for as long as the tensor.
template <class T>
T* step_object(const ResourceHandle& handle) {
  Resource* resource = handle.get();
  if (resource == nullptr || typeid(*resource) != typeid(StepHandle<T>))
    return nullptr;
  return &static_cast<StepHandle<T>*>(resource)->object();
}

// The objects of one step, and their names where they have any. Thread-safe.
class StepResources {
 public:
  // The handle of a new T, a StepObject.
  template <class T, class... Args>
  ResourceHandle make(Args&&... args) {
    auto object = std::make_shared<T>(std::forward<Args>(args)...);
    track(object);
    return ResourceHandle(make_ref_counted<StepHandle<T>>(std::move(object)));
  }

  // Keeps the object alive under a name until the step ends. False where the
  // name is taken.
  bool add_name(std::string name, ResourceHandle handle);
  // Empty where there is none of that name.
  ResourceHandle find(std::string_view name) const;

  // How many objects are alive.
  size_t alive() const;
  // Ends every object that is alive, and forgets it. REQUIRES: no kernel of
  // the step runs. Another step may begin afterwards.
  void end();

 private:
  void track(std::weak_ptr<StepObject> object);

  // Objects are let go of outside: their contents may hold others.
  mutable std::mutex mutex_;
  // Those that are gone are dropped when the list has doubled.
  std::vector<std::weak_ptr<StepObject>> objects_;
  size_t next_sweep_ = 64;
  std::map<std::string, ResourceHandle, std::less<>> names_;
};

}  // namespace tagflow::devices
