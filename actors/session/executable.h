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

// Thread-safe. Outlived by none of its steps.
class Executable : public std::enable_shared_from_this<Executable> {
 public:
  // Contexts that are kept for the next runs; those beyond end with their run.
  static constexpr int kMostIdle = 32;

  // One plan per partition, with the same feeds and fetches; those by name.
  Executable(std::shared_ptr<DeviceSet> devices, const CallLimits& limits,
             std::vector<std::unique_ptr<Plan>> plans,
             std::vector<std::string> fetches);
  // Ends its actors.
  ~Executable();

  size_t num_fetches() const { return fetches_.size(); }
  // Whether a step may change what outlives it.
  bool updates_state() const {
    return std::ranges::any_of(
        plans_, [](const auto& plan) { return plan->updates_state; });
  }
  // Whether what it reads may be taken for constant: Note [Frozen variables].
  bool can_be_frozen() const {
    const auto any = [this](bool Plan::*flag) {
      return std::ranges::any_of(
          plans_, [&](const auto& plan) { return (*plan).*flag; });
    };
    return any(&Plan::reads_variables) && !any(&Plan::updates_state) &&
           !any(&Plan::may_wait);
  }
  // Contexts that wait for a run.
  int num_idle() const;
  // Starts a step, whose answer comes through it. Where `lend`, the calling
  // thread runs the first quantum. Where `count`, the answer of a run that was
  // not cut short comes with its stats. An error means that nothing was
  // started, and that no answer will come. REQUIRES: one feed per feed of the
  // signature.
  Status start(const std::shared_ptr<Step>& step, std::span<const Tensor> feeds,
               bool lend, bool count);

 private:
  std::unique_ptr<RunContext> acquire();
  // The spare one, or null.
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
  // An idle context that costs no lock to take.
  std::atomic<RunContext*> spare_{nullptr};
  mutable std::mutex mutex_;  // guards the below
  std::unique_ptr<RunContext> idle_;
  int num_idle_ = 0;
  // Whose actors could not be ended for lack of memory.
  std::unique_ptr<RunContext> unended_;
};

}  // namespace tagflow::actors
