// Cancellation: how a wait for something outside of a step learns that the step
// has been cancelled.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

namespace tagflow::devices {

class CancelList;

// One wait of a step: an entry in a queue, an open request to a peer, a timer.
//
// Either the completion, which calls claim(), or the cancellation, which calls
// on_cancel(), wins a wait, never both. A completion that loses does not call
// `done`, and returns any element that it has taken. A kernel must add its hook
// before it makes the wait visible to other threads, because the context may be
// destroyed from then on. Owned by shared pointers; the list holds one while
// the hook is in it. Thread-safe.
class CancelHook {
 public:
  CancelHook() = default;
  virtual ~CancelHook() = default;
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;

  // Claims the wait: true for the first caller only, which may complete it.
  // Takes the hook off its list. Takes constant time and waits for no callback,
  // not even for a running one.
  bool claim() noexcept;
  // Whether neither side has won the wait so far.
  bool is_open() const noexcept {
    return state_.load(std::memory_order_acquire) == kWaiting;
  }

 protected:
  // Answers the wait: the step was cancelled before anybody claimed it. Is
  // called at most once, by the cancelling thread, which holds no lock of the
  // step: it may call anything that does not block.
  virtual void on_cancel() = 0;

 private:
  friend class CancelList;
  enum State : int { kWaiting, kClaimed, kCancelled };

  std::atomic<State> state_{kWaiting};
  std::atomic<CancelList*> list_{nullptr};  // stays once it is set
  // The list's mutex guards these.
  std::shared_ptr<CancelHook> self_;  // while it is in the list
  CancelHook* next_ = nullptr;
  CancelHook* previous_ = nullptr;
};

// The waits of one step, in the order in which they began. Outlives every hook
// that somebody may still claim. Thread-safe.
class CancelList {
 public:
  CancelList() = default;
  // Drops the hooks that are left without calling them.
  ~CancelList();
  CancelList(const CancelList&) = delete;
  CancelList& operator=(const CancelList&) = delete;

  // False if the step is cancelled already: then the hook is not added, and
  // the caller answers the wait.
  bool add(std::shared_ptr<CancelHook> hook);
  // Calls all hooks that nobody claims first, one after the other, and rejects
  // new ones from now on.
  void cancel();
  bool cancelled() const;

 private:
  friend class CancelHook;
  // REQUIRES for these: mutex_ is held.
  void link(CancelHook& hook, std::shared_ptr<CancelHook> self);
  // Returns the list's reference; null if the hook was not in it.
  std::shared_ptr<CancelHook> unlink(CancelHook& hook);

  mutable std::mutex mutex_;  // guards the below; held briefly
  bool cancelled_ = false;
  CancelHook* first_ = nullptr;
  CancelHook* last_ = nullptr;
};

}  // namespace tagflow::devices
