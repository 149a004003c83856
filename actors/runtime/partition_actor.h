// PartitionActor: one device's share of a run.
#pragma once

#include <caf/actor.hpp>

#include "actors/runtime/call_frames.h"
#include "actors/runtime/engine_actor.h"
#include "actors/runtime/frame.h"
#include "actors/runtime/frame_actor.h"

namespace tagflow::actors {

// Life cycle: spawned when a signature first runs, or runs more often at once
// than before; started with a step's feeds; done when its root frame has
// ended; started again with the next step; stopped with its executable.
class PartitionActor : public EngineActor {
 public:
  PartitionActor(caf::actor_config& config, PartitionRun& run);

  // The functions below require a quiet step.

  // A batch for the start of a run: it reuses the last batch of the previous
  // run, so that a run allocates none.
  Batch* take_start() { return pool().take(BatchKind::kStart); }
  bool done() const { return done_; }
  const FrameActor& root() const { return *root_; }
  FrameActor& root() { return *root_; }
  void collect(Counters& counters) const;
  void reset();
  // Ends frames of calls beyond those that are kept for the next step.
  void trim();

 protected:
  // kStart: the feeds. kExit: the root frame has ended.
  void on_batch(Batch* batch, Runner& runner) override;
  void on_stop() override;

 private:
  const PartitionRun& run_;
  CallFrames calls_;
  caf::actor root_handle_;
  FrameActor* root_;
  bool done_ = false;
};

}  // namespace tagflow::actors
