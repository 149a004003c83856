#include "actors/runtime/partition_actor.h"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/runtime/peer_wait.h"

namespace tagflow::actors {

PartitionActor::PartitionActor(caf::actor_config& config, PartitionRun& run)
    : EngineActor(config, run.policy, run.batches), run_(run), calls_(run) {
  run.calls = &calls_;
  root_handle_ = spawn_actor<FrameActor, caf::lazy_init + caf::hidden>(
      home_system(), std::cref(run), std::cref(run.plan->frames[0]));
  root_ = actor_pointer<FrameActor>(root_handle_);
}

void PartitionActor::on_batch(Batch* batch, Runner& runner) {
  if (batch->kind == BatchKind::kStart) {
    done_ = false;
    batch->kind = BatchKind::kEnter;
    batch->sender = this;
    batch->iteration = 0;
    runner.post(root_, batch);
    return;
  }
  done_ = true;
  pool().give(batch);
  if (run_.peers != nullptr) run_.peers->end_partition();
}

void PartitionActor::collect(Counters& counters) const {
  root_->collect(counters);
  calls_.collect(counters);
}

void PartitionActor::reset() {
  root_->reset();
  calls_.reset();
}

void PartitionActor::trim() { calls_.trim(); }

void PartitionActor::on_stop() {
  caf::anon_send(root_handle_, Stop{});
  calls_.stop();
}

}  // namespace tagflow::actors
