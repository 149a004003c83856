// Executable: a compiled signature, and the actors that run it.
#pragma once

#include <algorithm>
#include <atomic>
#include <caf/actor.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actors/device_set.h"
#include "actors/frame.h"
#include "actors/partition_actor.h"
#include "actors/plan.h"
#include "actors/rendezvous.h"
#include "actors/step.h"
#include "devices/step_resources.h"

namespace tagflow::actors {

// One set of actors for one run at a time. Only its executable, and the step
// that it runs, touch it.
struct RunContext {
  BatchStore batches;  // goes last
  std::vector<std::unique_ptr<PartitionRun>> runs;
  std::vector<caf::actor> handles;  // of partitions, and of the rendezvous
  std::vector<PartitionActor*> partitions;
  Rendezvous* rendezvous = nullptr;  // null: nothing is transferred
  devices::StepResources resources;  // of the step; empty between steps
  Counters before;  // what the actors had counted when the step started
  std::unique_ptr<RunContext> next;  // in a list
};

// How much recursion a run may do: see SessionOptions.
struct CallLimits {
  int max_depth = 0;
  int max_open = 0;
};

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
