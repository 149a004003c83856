// GuardedState: a StateObject whose contents kernels claim.
#pragma once

#include "devices/state/resource_manager.h"
#include "devices/state/state_lock.h"

namespace tagflow::devices {

// Thread-safe, except for its contents, which its lock guards.
class GuardedState : public StateObject {
 public:
  // Guards the contents: Note [Parking] in state_lock.h.
  StateLock& lock() { return lock_; }

  // Drops the contents. REQUIRES: the lock is held exclusively.
  virtual void clear() noexcept = 0;

 protected:
  // Clears it, but not while a kernel uses it: then after all current holders
  // of the lock, and those that wait for it, have released it.
  void on_end(const Status& reason) final;

 private:
  class Clearing;
  StateLock lock_;
};

}  // namespace tagflow::devices
