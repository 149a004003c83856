#include "devices/step_resources.h"

#include <algorithm>

#include "graph/fault.h"

namespace tagflow::devices {

void StepResources::track(std::weak_ptr<StepObject> object) {
  std::lock_guard lock(mutex_);
  if (objects_.size() >= next_sweep_) {
    std::erase_if(objects_, [](const auto& weak) { return weak.expired(); });
    next_sweep_ = std::max<size_t>(64, 2 * objects_.size());
  }
  objects_.push_back(std::move(object));
}

bool StepResources::add_name(std::string name, ResourceHandle handle) {
  std::lock_guard lock(mutex_);
  return names_.try_emplace(std::move(name), std::move(handle)).second;
}

void StepResources::remove_name(std::string_view name) {
  ResourceHandle handle;
  std::lock_guard lock(mutex_);
  const auto it = names_.find(name);
  if (it == names_.end()) return;
  handle = std::move(it->second);
  names_.erase(it);
}

ResourceHandle StepResources::find(std::string_view name) const {
  std::lock_guard lock(mutex_);
  const auto it = names_.find(name);
  return it == names_.end() ? ResourceHandle() : it->second;
}

size_t StepResources::alive() const {
  std::lock_guard lock(mutex_);
  return size_t(std::ranges::count_if(
      objects_, [](const auto& weak) { return !weak.expired(); }));
}

void StepResources::end() {
  std::vector<std::weak_ptr<StepObject>> objects;
  std::map<std::string, ResourceHandle, std::less<>> names;
  {
    std::lock_guard lock(mutex_);
    objects.swap(objects_);
    names.swap(names_);
    next_sweep_ = 64;
  }
  // An exception of one must not keep the others from ending.
  for (const auto& weak : objects)
    (void)guarded([&] {
      if (const std::shared_ptr<StepObject> object = weak.lock()) object->end();
    });
}

}  // namespace tagflow::devices
