#include "devices/cancellation.h"

#include <utility>

namespace tagflow::devices {

bool CancelHook::claim() noexcept {
  State waiting = kWaiting;
  if (!state_.compare_exchange_strong(waiting, kClaimed)) return false;
  // Either the thread that adds the hook sees that it is claimed, or this one
  // sees the list: see CancelList::add().
  CancelList* const list = list_.load();
  if (list == nullptr) return true;
  std::shared_ptr<CancelHook> self;  // released without the lock
  std::lock_guard lock(list->mutex_);
  self = list->unlink(*this);
  return true;
}

CancelList::~CancelList() {
  while (first_ != nullptr) unlink(*first_);
}

void CancelList::link(CancelHook& hook, std::shared_ptr<CancelHook> self) {
  hook.self_ = std::move(self);
  hook.previous_ = last_;
  (last_ == nullptr ? first_ : last_->next_) = &hook;
  last_ = &hook;
}

std::shared_ptr<CancelHook> CancelList::unlink(CancelHook& hook) {
  if (hook.self_ == nullptr) return nullptr;
  (hook.previous_ == nullptr ? first_ : hook.previous_->next_) = hook.next_;
  (hook.next_ == nullptr ? last_ : hook.next_->previous_) = hook.previous_;
  hook.next_ = hook.previous_ = nullptr;
  return std::move(hook.self_);
}

bool CancelList::add(std::shared_ptr<CancelHook> hook) {
  std::shared_ptr<CancelHook> claimed;  // released without the lock
  std::lock_guard lock(mutex_);
  if (cancelled_) return false;
  CancelHook& added = *hook;
  link(added, std::move(hook));
  added.list_.store(this);
  // It may have been completed by a thread that saw no list yet.
  if (added.state_.load() != CancelHook::kWaiting) claimed = unlink(added);
  return true;
}

bool CancelList::cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

void CancelList::cancel() {
  for (;;) {
    std::shared_ptr<CancelHook> hook;
    {
      std::lock_guard lock(mutex_);
      cancelled_ = true;
      if (first_ == nullptr) return;
      hook = unlink(*first_);
    }
    auto waiting = CancelHook::kWaiting;
    if (!hook->state_.compare_exchange_strong(waiting, CancelHook::kCancelled))
      continue;
    try {
      hook->on_cancel();
    } catch (...) {
      // The others must still be called. This wait ends when its event comes,
      // or with the last copy of its completion.
    }
  }
}

}  // namespace tagflow::devices
