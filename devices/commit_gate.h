// CommitGate: a step changes no state after its answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace tagflow::devices {

// A step changes state that outlives it - it assigns a variable, puts an
// element into a queue, takes one out - only between enter() and leave(). The
// answer closes the gate: later callers cannot enter, and put back what they
// took. The answer is given when those inside have left. So a kernel that
// outlives its step cannot overwrite state that was restored meanwhile.
//
// Invariants:
//   1. After close() nobody enters.
//   2. Once the gate is closed and nobody is inside, exactly one caller learns
//      of it: the one that closes it, or the last one that leaves, which calls
//      `drained`.
//
// Thread-safe. A caller that is inside keeps the step alive, by a unit of
// activity or by a wait.
class CommitGate {
 public:
  explicit CommitGate(std::function<void()> drained)
      : drained_(std::move(drained)) {}
  CommitGate(const CommitGate&) = delete;
  CommitGate& operator=(const CommitGate&) = delete;

  // False if the step has been answered.
  bool enter() noexcept {
    uint32_t word = word_.load(std::memory_order_relaxed);
    do {
      if (word & kClosed) return false;
    } while (!word_.compare_exchange_weak(word, (word + 1) | kUsed,
                                          std::memory_order_acquire,
                                          std::memory_order_relaxed));
    return true;
  }
  void leave() {
    if (word_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | kUsed) + 1)
      drained_();
  }
  // Whether somebody is inside.
  bool is_entered() const noexcept {
    return (word_.load(std::memory_order_relaxed) & kInside) != 0;
  }
  // Whether somebody is inside, or has been.
  bool was_entered() const noexcept {
    return (word_.load(std::memory_order_relaxed) & kUsed) != 0;
  }
  // Whether nobody is inside. REQUIRES: called once.
  bool close() {
    return (word_.fetch_or(kClosed, std::memory_order_acq_rel) & kInside) == 0;
  }

 private:
  static constexpr uint32_t kClosed = 1u << 31;
  static constexpr uint32_t kUsed = 1u << 30;  // somebody has entered
  static constexpr uint32_t kInside = kUsed - 1;
  std::atomic<uint32_t> word_{0};  // how many are inside, and the two marks
  const std::function<void()> drained_;
};

// A stay inside a gate. Ends with its scope.
class [[nodiscard]] Commit {
 public:
  // `gate` may be null: outside of a step everything may be changed.
  explicit Commit(CommitGate* gate) noexcept
      : gate_(gate), allowed_(gate == nullptr || gate->enter()) {}
  ~Commit() {
    if (gate_ != nullptr && allowed_) gate_->leave();
  }
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  // Whether state may be changed while this lives. If not, the step has been
  // answered, and nobody receives its remaining results.
  explicit operator bool() const { return allowed_; }

 private:
  CommitGate* const gate_;
  const bool allowed_;
};

}  // namespace tagflow::devices
