#include "actors/session/signature_cache.h"

#include <utility>

namespace tagflow::actors {

std::shared_ptr<const Prepared> SignatureCache::find(const std::string& key) {
  Entries dropped;  // destroyed without the mutex
  std::lock_guard lock(mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it->second);
  if (!it->second->prepared->executable->is_lost()) return it->second->prepared;
  by_key_.erase(it);
  dropped.splice(dropped.begin(), entries_, entries_.begin());
  return nullptr;
}

void SignatureCache::add(const std::string& key,
                         std::shared_ptr<const Prepared> prepared) {
  Entries dropped;  // destroyed without the mutex
  std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;
  entries_.push_front({key, std::move(prepared)});
  try {
    by_key_[key] = entries_.begin();
  } catch (...) {
    entries_.pop_front();
    throw;
  }
  if (entries_.size() <= most_) return;
  by_key_.erase(entries_.back().key);
  dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
}

void SignatureCache::clear() {
  Entries dropped;
  std::lock_guard lock(mutex_);
  by_key_.clear();
  dropped.swap(entries_);
}

size_t SignatureCache::size() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

// Each name is preceded by its length.
std::string SignatureCache::key(const Signature& signature) {
  std::string key;
  const auto add = [&](char kind, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      key += kind;
      key += std::to_string(name.size());
      key += ':';
      key += name;
    }
  };
  add('f', signature.feeds);
  add('o', signature.fetches);
  add('t', signature.targets);
  return key;
}

}  // namespace tagflow::actors
