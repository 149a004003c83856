#include "devices/state/resource_manager.h"

#include <algorithm>
#include <utility>

namespace tagflow::devices {

void StateObject::end(Status reason) {
  {
    std::lock_guard lock(mutex_);
    if (ended_.load(std::memory_order_relaxed)) return;
    reason_ = reason;
    ended_.store(true, std::memory_order_release);
  }
  on_end(reason);
}

Status StateObject::ended() const {
  if (!has_ended()) return {};
  std::lock_guard lock(mutex_);
  return reason_;
}

std::string ResourceKey::describe() const {
  return container.empty() ? fmt::format("{} \"{}\"", kind, name)
                           : fmt::format("{} \"{}\" of container \"{}\"", kind,
                                         name, container);
}

std::string ResourceKey::path() const {
  return container.empty() ? name : fmt::format("{}/{}", container, name);
}

ResourceManager::~ResourceManager() {
  for (auto& [key, entry] : table_)
    if (entry.object)
      entry.object->end(error(Code::kCancelled,
                              "[state] {} has ended with its session",
                              key.describe()));
}

Result<Ref<StateObject>> ResourceManager::find_or_make(const ResourceKey& key,
                                                       const Make& make,
                                                       const Restore& restore) {
  std::lock_guard lock(mutex_);
  Entry& entry = table_[key];
  if (!entry.object || entry.object->has_ended()) {
    TAGFLOW_ASSIGN(Ref<StateObject> made, make());
    made->key_ = key;
    if (entry.saved.valid() && restore) {
      TAGFLOW_RETURN_IF_ERROR(restore(*made, entry.saved));
      entry.saved.reset();
    }
    entry.object = std::move(made);
  }
  return entry.object;
}

void ResourceManager::restore_later(const ResourceKey& key, Tensor saved) {
  Status reason =
      error(Code::kCancelled, "[state] {} is gone: its contents were restored",
            key.describe());
  Ref<StateObject> object;
  {
    std::lock_guard lock(mutex_);
    Entry& entry = table_[key];
    entry.saved = std::move(saved);
    object = std::exchange(entry.object, {});
  }
  if (object) object->end(std::move(reason));
}

std::vector<Tensor> ResourceManager::left_to_restore() const {
  std::lock_guard lock(mutex_);
  std::vector<Tensor> left;
  for (const auto& [key, entry] : table_)
    if (entry.saved.valid()) left.push_back(entry.saved);
  return left;
}

Ref<StateObject> ResourceManager::find(const ResourceKey& key) const {
  std::lock_guard lock(mutex_);
  const auto it = table_.find(key);
  return it == table_.end() ? Ref<StateObject>() : it->second.object;
}

bool ResourceManager::remove(const ResourceKey& key, Status reason) {
  Ref<StateObject> object;
  {
    std::lock_guard lock(mutex_);
    const auto it = table_.find(key);
    if (it == table_.end()) return false;
    object = std::exchange(it->second.object, {});
  }
  if (!object) return false;
  object->end(std::move(reason));
  return true;
}

void ResourceManager::reset(std::span<const std::string> containers) {
  // Errors are made before anything is removed: operations that wait in an
  // object must receive its end.
  std::vector<std::pair<Status, Ref<StateObject>>> gone;
  {
    std::lock_guard lock(mutex_);
    std::vector<Ref<StateObject>*> found;
    for (auto& [key, entry] : table_) {
      if (std::ranges::find(containers, key.container) == containers.end())
        continue;
      entry.saved.reset();
      if (!entry.object) continue;
      gone.emplace_back(
          error(Code::kCancelled, "[state] {} is gone: its container was reset",
                key.describe()),
          entry.object);
      found.push_back(&entry.object);
    }
    for (Ref<StateObject>* object : found) *object = {};
  }
  for (auto& [status, object] : gone) object->end(std::move(status));
}

void ResourceManager::for_each(
    const std::function<void(const ResourceKey&, StateObject&)>& visit) const {
  std::vector<std::pair<ResourceKey, Ref<StateObject>>> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : table_)
      if (entry.object) all.emplace_back(key, entry.object);
  }
  for (const auto& [key, object] : all) visit(key, *object);
}

size_t ResourceManager::size() const {
  std::lock_guard lock(mutex_);
  return size_t(std::ranges::count_if(
      table_, [](const auto& item) { return bool(item.second.object); }));
}

ResourceManager::Homes ResourceManager::homes() const {
  std::lock_guard lock(mutex_);
  Homes homes;
  for (const auto& [key, entry] : table_)
    if (!entry.home.empty()) homes.emplace_hint(homes.end(), key, entry.home);
  return homes;
}

bool ResourceManager::may_have(const ResourceKey& key,
                               const std::string& home) const {
  const auto it = table_.find(key);
  return it == table_.end() || it->second.home.empty() ||
         it->second.home == home;
}

bool ResourceManager::request_homes(std::span<const HomeRequest> claims) {
  std::lock_guard lock(mutex_);
  for (const HomeRequest& claim : claims) {
    const auto may_be_there = [&](const ResourceKey& key) {
      return may_have(key, claim.device);
    };
    if (!may_be_there(claim.key) ||
        !std::ranges::all_of(claim.tied, may_be_there))
      return false;
  }
  for (const HomeRequest& claim : claims) table_[claim.key].home = claim.device;
  return true;
}

}  // namespace tagflow::devices
