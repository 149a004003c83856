// StateLock: access to contents that steps share.
#pragma once

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "devices/cancellation.h"
#include "graph/handle.h"
#include "graph/status.h"

namespace tagflow::devices {

// Note [Parking]
// A kernel claims a variable before it uses it: to read it together with
// others, or to change it alone. Nobody blocks for it. A kernel that finds the
// variable in use *parks*: it adds a waiter to the variable's queue, and its
// thread does something else. A release hands the variable to the waiters, in
// their order, and these continue where the engine has a place for them. A
// cancellation ends the wait.
//
// A kernel of several variables claims them in the order of their addresses,
// and keeps those that it has while it waits for the next one: this excludes
// deadlocks.

// A readers-writer lock. Waiters go first, in their order, so that a writer
// gets its turn. Thread-safe.
class StateLock {
 public:
  enum class Mode : uint8_t { kShared, kExclusive };

  // A wait for the lock. Its owner adds it to the cancel list of its step
  // before it waits.
  class Waiter : public CancelHook {
   public:
    // The waiter owns the lock, and must release it. Called once, unless the
    // wait was cancelled, by the thread that released the lock, or by wait()
    // itself. Returns soon and must not throw.
    virtual void on_granted() = 0;
  };

  StateLock() = default;
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

  // Takes the lock unless somebody has it in a mode that excludes this one, or
  // waits for it.
  bool try_lock(Mode mode) noexcept {
    return take(mode, mode == Mode::kShared ? kWriter | kWaited : ~uint32_t(0));
  }
  // Gives the lock to the waiter, now or later. Throws std::bad_alloc; then
  // nothing waits.
  void wait(Mode mode, std::shared_ptr<Waiter> waiter);
  // REQUIRES: the caller has it in that mode.
  void unlock(Mode mode) noexcept {
    const uint32_t before =
        word_.fetch_sub(one(mode), std::memory_order_release);
    if (before & kWaited) [[unlikely]]
      grant();
  }
  // A wait was cancelled: those behind it need not wait for its turn. To be
  // called before the owner of the lock may be destroyed.
  void pass_over() noexcept { grant(); }

 private:
  struct Entry {
    Mode mode;
    std::shared_ptr<Waiter> waiter;
  };
  static constexpr uint32_t kWaited = 1u << 31;  // somebody waits
  static constexpr uint32_t kWriter = 1u << 30;
  static constexpr uint32_t kReaders = kWriter - 1;

  // The word's increment for one user in that mode.
  static uint32_t one(Mode mode) { return mode == Mode::kShared ? 1 : kWriter; }
  // Takes it unless the word has one of these bits.
  bool take(Mode mode, uint32_t excluded) noexcept {
    uint32_t word = word_.load(std::memory_order_relaxed);
    do {
      if (word & excluded) return false;
    } while (!word_.compare_exchange_weak(word, word + one(mode),
                                          std::memory_order_acquire,
                                          std::memory_order_relaxed));
    return true;
  }
  // Hands the lock to waiters from the front while they can have it.
  void grant() noexcept;

  std::atomic<uint32_t> word_{0};  // readers, and the flags
  std::mutex mutex_;               // guards the queue; held briefly
  std::deque<Entry> queue_;
};

// The locks that one kernel needs at once; the destructor releases them. The
// kernel's inputs keep the owners of the locks alive. The claim takes its own
// references only if the kernel has to wait, since they would cost a good part
// of the time of a small update. Thread-compatible.
class StateClaim {
 public:
  using Mode = StateLock::Mode;

  StateClaim() = default;
  StateClaim(StateClaim&& other) noexcept;
  StateClaim& operator=(StateClaim&& other) noexcept;
  ~StateClaim() { release(); }

  // A requested lock, and its owner.
  struct Part {
    StateLock* lock;
    Mode mode;
    Resource* owner;
    Ref<Resource> kept;  // the owner, once one of the locks was in use
    void wait(std::shared_ptr<StateLock::Waiter> waiter) const {
      lock->wait(mode, std::move(waiter));
    }
  };

  // Requests the lock, which `owner` keeps alive. Repeated requests count once,
  // in the stronger mode. REQUIRES: nothing was taken yet; the owner lives
  // until take() is false, or release().
  void add(StateLock& lock, Mode mode, Resource& owner) {
    if (parts_.empty()) [[likely]]
      parts_.push_back(Part{&lock, mode, &owner, {}});
    else
      add_another(lock, mode, owner);
  }
  bool empty() const { return parts_.empty(); }

  // Takes the remaining locks, in order, up to one that is in use. Returns
  // whether it has all of them.
  bool take() noexcept {
    for (; taken_ < parts_.size(); ++taken_)
      if (!parts_[taken_].lock->try_lock(parts_[taken_].mode)) [[unlikely]] {
        keep_owners();
        return false;
      }
    return true;
  }
  // The lock at which take() stopped. A waiter for it has a copy, since a
  // cancellation may end the claim before the wait has begun. A waiter that is
  // cancelled reports it to the lock: StateLock::pass_over(). REQUIRES: take()
  // was false.
  Part next() const { return parts_[taken_]; }
  // That lock was granted: it belongs to this claim, and take() continues after
  // it.
  void note_granted() { ++taken_; }
  // Blocks the thread until it has all. False if `hooks` is given and is
  // cancelled meanwhile.
  bool take_blocking(CancelList* hooks);
  void release() noexcept {
    // Owners are released last: a lock may be a member of one.
    while (taken_ > 0) {
      --taken_;
      parts_[taken_].lock->unlock(parts_[taken_].mode);
    }
    parts_.clear();
  }

 private:
  void add_another(StateLock& lock, Mode mode, Resource& owner);
  void keep_owners() noexcept;

  boost::container::small_vector<Part, 4> parts_;
  size_t taken_ = 0;  // the first ones of parts_
};

}  // namespace tagflow::devices
