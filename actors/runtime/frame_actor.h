// FrameActor: one instance of a frame at a time: its Enters, Exits and end.
#pragma once

#include <caf/actor.hpp>
#include <deque>
#include <vector>

#include "actors/runtime/engine_actor.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/iteration_actor.h"

namespace tagflow::actors {

// Belongs to the iteration actor (or, for the root frame, the partition actor)
// that spawned it, which needs it for at most one instance at a time. So
// frames, their rings and all their children are reused from iteration to
// iteration and from run to run, without a shared pool. The frame actors of
// calls come from CallFrames, since the number that a recursion needs is known
// at run time only.
//
// Life cycle of an instance: started by the first batch of Enter tokens, dead
// ones included, or of a call's inputs; runs while iterations do; ends when the
// last iteration gives it the baton. Then each Exit that was never live sends
// one dead token to the parent. The actor is idle until the next instance.
//
// Invariants:
//   1. The baton goes to iteration 0 when all Enters have arrived.
//   2. Each Exit sends exactly one token per instance.
class FrameActor : public EngineActor {
 public:
  FrameActor(caf::actor_config& config, const PartitionRun& run,
             const FramePlan& plan);

  bool live() const { return live_; }
  const FrameInstance& instance() const { return instance_; }
  // Whether exit `index` was live in the last instance.
  bool exit_was_live(size_t index) const { return exit_live_[index] != 0; }
  // The number of the last iteration. REQUIRES: the instance has ended.
  int64_t last_iteration() const { return last_iteration_; }
  // How many instances it has begun, in all steps.
  uint64_t num_begun() const { return counters_.frames; }
  // Iterations that begin from now on have that observer, or none. REQUIRES:
  // the step is held, within Hold::look()
  void watch(Observer* observer);
  // REQUIRES: the step is quiet.
  void collect(Counters& counters) const;
  void reset();

 protected:
  void on_batch(Batch* batch, Runner& runner) override;
  void on_stop() override;

 private:
  // False if the instance is rejected: then the step has failed.
  bool begin(const Batch& batch);
  void report_start();
  void refuse_call(const FrameInstance& outer, const std::string& why);
  void take_enters(Batch* batch, Runner& runner);
  void take_exits(Batch* batch, Runner& runner);
  void end();
  // The set to which a loop constant is added: no iteration has seen it yet.
  ConstSet& open_constants();

  FrameInstance instance_;
  IterationActor* head_;  // runs iteration 0
  bool live_ = false;
  uint32_t enters_left_ = 0;
  uint32_t constants_left_ = 0;
  // Note [Counted ends] in batch.h.
  uint32_t sent_ = 0;  // batches to iteration 0
  uint32_t exits_received_ = 0;
  uint32_t exits_expected_ = 0;  // 0: unknown
  int64_t last_iteration_ = 0;
  uint32_t sent_parent_ = 0;
  uint64_t epoch_ = 0;
  // The loop constants, in the order of their arrival; and sets of them.
  // Constants may be added to the last set until an iteration has seen it. Kept
  // until the instance ends.
  std::vector<Token> constants_;
  std::deque<ConstSet> constant_sets_;
  bool constants_seen_ = false;
  std::vector<uint8_t> exit_live_;
  Counters counters_;
};

}  // namespace tagflow::actors
