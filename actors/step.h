// Step: one run of a signature, from its feeds to its result.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/session.h"
#include "devices/kernel.h"
#include "graph/tensor.h"

namespace tagflow::actors {

// What a kernel, or the engine, threw: ResourceExhausted where memory ran out,
// else Internal.
Status status_of(const std::exception& thrown);

// kernel.compute(context), with what it throws as its status.
Status run_kernel(const devices::Kernel& kernel,
                  devices::KernelContext& context);

// What arrived for one fetch. Written once, by the iteration of the root frame
// that produces it.
struct FetchSlot {
  enum State : uint8_t { kMissing, kLive, kDead };
  Tensor value;
  State state = kMissing;
};

// Life cycle: created by the session; running, while activity is above zero
// (Note [Activity] in runner.h); over, when the activity has reached zero and
// its actors were taken back; answered then, with the result or the first
// error. A cancellation answers at once, a time-out after kGrace at the latest:
// a kernel that cannot be interrupted outlives the answer without harm.
//
// Invariants:
//   1. The first error wins; it sets cancelled(), after which no batch of the
//      step has any effect.
//   2. The answer is given exactly once.
//   3. on_quiet is called exactly once, when nothing of the step runs.
class Step : public std::enable_shared_from_this<Step> {
 public:
  using Answer = Result<std::vector<Tensor>>;
  // How long after its deadline a step may come to rest, so that its answer
  // can say how far the run had come.
  static constexpr std::chrono::milliseconds kGrace{20};

  Step(uint64_t id, size_t fetches);

  devices::StepInfo info;
  Observer* observer = nullptr;
  Trace* trace = nullptr;
  std::vector<FetchSlot> fetches;
  // Zero where there is none. Set before the step starts.
  std::chrono::steady_clock::time_point deadline;
  std::chrono::nanoseconds timeout{0};

  // Poisons the step; later errors are dropped. Thread-safe.
  void fail(Status status);
  // Reads the flag that fail() sets. Thread-safe.
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // The first error, or OK. Thread-safe.
  Status error() const;

  // Units of activity; see the Note. Thread-safe.
  void add_activity() { activity_.fetch_add(1, std::memory_order_relaxed); }
  void drop_activity() {
    if (activity_.fetch_sub(1, std::memory_order_acq_rel) == 1) quiet();
  }

  // The step keeps itself alive until it is quiet, whoever else lets go of it.
  // REQUIRES: called once, before the first unit of activity.
  void keep_alive() { self_ = shared_from_this(); }

  // Called by the last unit's holder. Set before the step starts.
  std::function<void(Step&)> on_quiet;
  // Called with the answer, instead of waking a waiter; on no thread that is
  // only lent. Set before the start.
  std::function<void(Answer, const RunStats&)> on_answer;

  // Gives the answer, with what the run did as far as it is known, unless it
  // was given. Thread-safe.
  void answer(Answer answer, const RunStats& stats = {});
  // Whether it was, so that nobody asks for reasons any more.
  bool answered() const;
  // Waits for the answer, and for the stats where not null; after the deadline
  // fails the step, and after the grace answers.
  Answer wait(RunStats* stats = nullptr);
  // Fails the step if its deadline has passed. Thread-safe.
  void check_deadline();
  // The same without looking at the clock. Thread-safe.
  void expire();
  // The first error is that of the deadline. Thread-safe.
  bool expired() const;
  // Answers a step that was still busy after the grace, with its first error.
  // REQUIRES: there is one. Thread-safe.
  void give_up();

 private:
  // Returns whether the error is the first. REQUIRES: mutex_ is held.
  bool fail_locked(Status status);
  Status late() const;
  void quiet();

  std::shared_ptr<Step> self_;  // from keep_alive() to quiet()
  std::atomic<bool> cancelled_{false};
  std::atomic<int64_t> activity_{0};
  mutable std::mutex mutex_;  // guards the below; held briefly
  std::condition_variable changed_;
  Status error_;
  bool expired_ = false;
  bool answered_ = false;
  std::optional<Answer> answer_;
  RunStats stats_;
};

}  // namespace tagflow::actors
