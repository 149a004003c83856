// Executable: a compiled signature, and the actors that run it.
#pragma once

#include <caf/actor.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actors/engine.h"
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
  std::vector<std::unique_ptr<PartitionRun>> runs;
  std::vector<caf::actor> handles;
  std::vector<PartitionActor*> partitions;
  caf::actor rendezvous_handle;
  Rendezvous* rendezvous = nullptr;  // null: nothing is transferred
  devices::StepResources resources;  // of the step; empty between steps
  Counters before;  // what the actors had counted when the step started
};

// Thread-safe. Outlived by none of its steps.
class Executable : public std::enable_shared_from_this<Executable> {
 public:
  // One plan per partition, with the same feeds and fetches; those by name.
  Executable(Engine& engine, std::vector<std::unique_ptr<Plan>> plans,
             std::vector<std::string> fetches);
  // Ends its actors.
  ~Executable();

  size_t num_fetches() const { return fetches_.size(); }

  // Starts a step, whose answer comes through it. Where `lend`, the calling
  // thread runs the first quantum. Where `count`, the answer of a run that was
  // not cut short comes with its stats. REQUIRES: one feed per feed of the
  // signature.
  void start(const std::shared_ptr<Step>& step, std::span<const Tensor> feeds,
             bool lend, bool count);

 private:
  std::unique_ptr<RunContext> acquire();
  std::unique_ptr<RunContext> make_context();
  void finish(Step& step, std::unique_ptr<RunContext> context, bool count);
  Step::Answer outcome(Step& step, const RunContext& context);

  void number_transfers();

  Engine& engine_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<std::string> transfers_;  // by number
  const std::vector<std::string> fetches_;
  std::mutex mutex_;  // guards idle_
  std::vector<std::unique_ptr<RunContext>> idle_;
};

}  // namespace tagflow::actors
