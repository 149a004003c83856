// CommitGate: nothing of a step changes state after the step's answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace tagflow::devices {

// Whatever a step does to state that outlives it - it assigns a variable, puts
// an element into a queue, takes one out - it does between enter() and leave().
// The answer closes the gate: who comes later gets no entry, and puts back what
// it took; the answer is given when those inside have left. So a kernel that
// outlives its step cannot write over what was restored meanwhile.
//
// Invariants:
//   1. After close() nobody enters.
//   2. Once the gate is closed and nobody is inside, exactly one hears of it:
//      who closes it, or `drained`, which the last one calls that leaves.
//
// Thread-safe. Whoever is inside keeps the step alive, by a unit of activity or
// by a wait.
class CommitGate {
 public:
  explicit CommitGate(std::function<void()> drained)
      : drained_(std::move(drained)) {}
  CommitGate(const CommitGate&) = delete;
  CommitGate& operator=(const CommitGate&) = delete;

  // False where the step has been answered.
  bool enter() noexcept {
    uint32_t inside = word_.load(std::memory_order_relaxed);
    do {
      if (inside & kClosed) return false;
    } while (!word_.compare_exchange_weak(inside, inside + 1,
                                          std::memory_order_acquire,
                                          std::memory_order_relaxed));
    return true;
  }
  void leave() {
    if (word_.fetch_sub(1, std::memory_order_acq_rel) == kClosed + 1)
      drained_();
  }
  // Whether nobody is inside. REQUIRES: called once.
  bool close() {
    return word_.fetch_or(kClosed, std::memory_order_acq_rel) == 0;
  }

 private:
  static constexpr uint32_t kClosed = 1u << 31;
  std::atomic<uint32_t> word_{0};  // how many are inside, and the mark
  const std::function<void()> drained_;
};

// A stay inside of a gate. Ends with its scope.
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

  // Whether state may be changed while this lives. Where it may not, the step
  // has been answered, and nobody hears what becomes of the rest of it.
  explicit operator bool() const { return allowed_; }

 private:
  CommitGate* const gate_;
  const bool allowed_;
};

}  // namespace tagflow::devices
