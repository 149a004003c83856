#include "actors/partition_actor.h"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

namespace tagflow::actors {

PartitionActor::PartitionActor(caf::actor_config& config,
                               const PartitionRun& run)
    : EngineActor(config, run.policy) {
  root_handle_ = home_system().spawn<FrameActor, caf::lazy_init + caf::hidden>(
      std::cref(run), std::cref(run.plan->frames[0]));
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
}

void PartitionActor::on_stop() { caf::anon_send(root_handle_, Stop{}); }

}  // namespace tagflow::actors
