#include "net/worker/executables.h"

#include <algorithm>
#include <utility>

namespace tagflow::net {

Result<bool> Executables::begin(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = entries_.emplace(number, Entry());
  if (is_new) {
    if (entries_.size() <= kMost) return true;
    // The master releases what was refused, too.
    entry->second.state = State::kOver;
    return error(Code::kResourceExhausted,
                 "[net] a worker keeps {} executables at most", kMost);
  }
  if (entry->second.state != State::kReleased)
    return error(Code::kAlreadyExists, "[net] executable {} is registered",
                 number);
  entries_.erase(entry);
  return false;
}

bool Executables::end(uint64_t number, std::shared_ptr<Registered> registered) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  if (found->second.state == State::kReleased) {
    entries_.erase(found);
    return false;
  }
  found->second = {State::kOver, std::move(registered)};
  return true;
}

Result<std::shared_ptr<Registered>> Executables::release(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = entries_.emplace(number, Entry());
  if (is_new && entries_.size() > 2 * kMost) {
    entries_.erase(entry);
    return error(Code::kResourceExhausted,
                 "[net] executable {} is released, and was not registered",
                 number);
  }
  if (is_new || entry->second.state != State::kOver) {
    entry->second.state = State::kReleased;
    return std::shared_ptr<Registered>();
  }
  auto registered = std::move(entry->second.registered);
  entries_.erase(entry);
  return registered;
}

bool Executables::is_released(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  return is_closed_ ||
         (found != entries_.end() && found->second.state == State::kReleased);
}

void Executables::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
}

std::shared_ptr<Registered> Executables::find(uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(number);
  return found == entries_.end() ? nullptr : found->second.registered;
}

uint64_t Executables::count() const {
  const std::lock_guard lock(mutex_);
  return uint64_t(std::ranges::count_if(entries_, [](const auto& entry) {
    return entry.second.registered != nullptr;
  }));
}

void Executables::clear() {
  std::unique_lock lock(mutex_);
  const auto all = std::exchange(entries_, {});
  lock.unlock();
}

}  // namespace tagflow::net
