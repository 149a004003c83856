// Executable: a compiled signature, and the actors that run it.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/plan/plan.h"
#include "actors/runtime/device_set.h"
#include "actors/runtime/run_context.h"
#include "actors/runtime/step.h"

namespace tagflow::actors {

// What a session runs of a signature: here, or in the processes of a cluster.
// Thread-safe. Lives at least as long as each of its steps.
class Executable {
 public:
  virtual ~Executable() = default;

  virtual size_t num_fetches() const = 0;
  // Whether a step may change state that outlives it.
  virtual bool updates_state() const = 0;
  // Whether a step may change what queues and the like of this process have.
  virtual bool moves_elements() const { return false; }
  // Whether the variables that it reads may become constants: Note [Frozen
  // variables].
  virtual bool can_be_frozen() const = 0;
  // Whether no step can run any more: a process that has a part is lost.
  virtual bool is_lost() const { return false; }
  // Starts a step, which gives the answer. If `lend`, the calling thread runs
  // the first quantum. If `count`, the answer of a run that was not aborted
  // includes its statistics. After an error, the step was not started, and
  // gives no answer. REQUIRES: one feed per feed of the signature.
  virtual Status start(const std::shared_ptr<Step>& step,
                       std::span<const Tensor> feeds, bool lend,
                       bool count) = 0;
};

// How the partitions of an executable reach those of other processes.
struct Peers {
  SpawnRendezvous spawn_rendezvous;
  // What a step waits for while nothing of it runs here, in words. Thread-safe.
  std::function<std::string()> describe_wait;
};

// Runs partitions in this process: all of a signature, or the part of a worker
// (Note [A part of a step] in actors/runtime/peer_wait.h). A part answers with
// the fetches that it has; the others are tensors that are not valid.
class LocalExecutable final
    : public Executable,
      public std::enable_shared_from_this<LocalExecutable> {
 public:
  // How many contexts are kept for further runs; others end with their run.
  static constexpr int kMostIdle = 32;

  // One plan per partition, with the same feeds and fetches. `fetches` are
  // names. `host`: what kernels may reach; null: everything. With `peers`, a
  // Send whose Recv is in no plan, or the other way round, is one to a peer.
  LocalExecutable(std::shared_ptr<DeviceSet> devices,
                  const RunSettings& settings,
                  std::vector<std::unique_ptr<Plan>> plans,
                  std::vector<std::string> fetches,
                  std::shared_ptr<const devices::HostAccess> host = nullptr,
                  std::optional<Peers> peers = std::nullopt);
  // Ends its actors.
  ~LocalExecutable() override;

  size_t num_fetches() const override { return fetches_.size(); }
  bool updates_state() const override { return any(&Plan::updates_state); }
  bool moves_elements() const override { return any(&Plan::moves_elements); }
  bool can_be_frozen() const override {
    return any(&Plan::reads_variables) && !any(&Plan::updates_state) &&
           !any(&Plan::may_wait);
  }
  Status start(const std::shared_ptr<Step>& step, std::span<const Tensor> feeds,
               bool lend, bool count) override;
  // The number of idle contexts.
  int num_idle() const;

 private:
  bool any(bool Plan::*flag) const {
    return std::ranges::any_of(plans_,
                               [&](const auto& plan) { return (*plan).*flag; });
  }
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
  const RunSettings settings_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<Transfer> transfers_;  // by number
  const std::vector<std::string> fetches_;
  std::vector<bool> has_fetch_;  // by fetch: whether a plan has it
  const std::optional<Peers> peers_;
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
