// Executable: a compiled signature, and the actors that run it.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actors/plan/plan.h"
#include "actors/runtime/device_set.h"
#include "actors/runtime/run_context.h"
#include "actors/runtime/step.h"

namespace tagflow::actors {

// Thread-safe. Lives at least as long as each of its steps.
class Executable : public std::enable_shared_from_this<Executable> {
 public:
  // How many contexts are kept for further runs; others end with their run.
  static constexpr int kMostIdle = 32;

  // One plan per partition, with the same feeds and fetches. `fetches` are
  // names. `host`: what kernels may reach; null: everything.
  Executable(std::shared_ptr<DeviceSet> devices, const CallLimits& limits,
             std::vector<std::unique_ptr<Plan>> plans,
             std::vector<std::string> fetches,
             std::shared_ptr<const devices::HostAccess> host = nullptr);
  // Ends its actors.
  ~Executable();

  size_t num_fetches() const { return fetches_.size(); }
  // Whether a step may change state that outlives it.
  bool updates_state() const {
    return std::ranges::any_of(
        plans_, [](const auto& plan) { return plan->updates_state; });
  }
  // Whether the variables that it reads may become constants: Note [Frozen
  // variables].
  bool can_be_frozen() const {
    const auto any = [this](bool Plan::*flag) {
      return std::ranges::any_of(
          plans_, [&](const auto& plan) { return (*plan).*flag; });
    };
    return any(&Plan::reads_variables) && !any(&Plan::updates_state) &&
           !any(&Plan::may_wait);
  }
  // The number of idle contexts.
  int num_idle() const;
  // Starts a step, which gives the answer. If `lend`, the calling thread runs
  // the first quantum. If `count`, the answer of a run that was not aborted
  // includes its statistics. After an error, the step was not started, and
  // gives no answer. REQUIRES: one feed per feed of the signature.
  Status start(const std::shared_ptr<Step>& step, std::span<const Tensor> feeds,
               bool lend, bool count);

 private:
  std::unique_ptr<RunContext> acquire();
  // The spare context, or null.
  std::unique_ptr<RunContext> take_spare();
  std::unique_ptr<RunContext> make_context();
  void release(std::unique_ptr<RunContext> context, bool reusable);
  void end_actors(std::unique_ptr<RunContext> context) noexcept;
  void finish(Step& step, std::unique_ptr<RunContext> context, bool count);
  Step::Answer outcome(Step& step, const RunContext& context);
  void number_transfers();

  const std::shared_ptr<DeviceSet> devices_;
  const CallLimits limits_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::string> transfers_;  // by number
  const std::vector<std::string> fetches_;
  const std::shared_ptr<const devices::HostAccess> host_access_;
  // An idle context that can be taken without a lock.
  std::atomic<RunContext*> spare_{nullptr};
  mutable std::mutex mutex_;  // guards the below
  std::unique_ptr<RunContext> idle_;
  int num_idle_ = 0;
  // Contexts whose actors could not be ended for lack of memory.
  std::unique_ptr<RunContext> unended_;
};

}  // namespace tagflow::actors
