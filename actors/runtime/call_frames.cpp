#include "actors/runtime/call_frames.h"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/runtime/frame_actor.h"

namespace tagflow::actors {

FrameActor* CallFrames::take(int plan, caf::actor_system& system) {
  const FramePlan& frame = run_.plan->frames[size_t(plan)];
  open_.fetch_add(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  std::vector<FrameActor*>& idle = idle_[&frame];
  if (!idle.empty()) {
    FrameActor* const taken = idle.back();
    idle.pop_back();
    return taken;
  }
  all_.push_back(spawn_actor<FrameActor, caf::lazy_init + caf::hidden>(
      system, std::cref(run_), std::cref(frame)));
  return actor_pointer<FrameActor>(all_.back());
}

void CallFrames::give(FrameActor* frame) {
  open_.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  idle_[frame->instance().plan].push_back(frame);
}

void CallFrames::collect(Counters& counters) const {
  for (const caf::actor& actor : all_)
    actor_pointer<FrameActor>(actor)->collect(counters);
}

void CallFrames::reset() {
  idle_.clear();
  open_ = 0;
  for (const caf::actor& actor : all_) {
    auto* frame = actor_pointer<FrameActor>(actor);
    frame->reset();
    idle_[frame->instance().plan].push_back(frame);
  }
}

void CallFrames::trim() {
  if (all_.size() <= kMostKept) return;
  for (size_t i = kMostKept; i < all_.size(); ++i)
    caf::anon_send(all_[i], Stop{});
  all_.resize(kMostKept);
  idle_.clear();
  for (const caf::actor& actor : all_) {
    auto* frame = actor_pointer<FrameActor>(actor);
    idle_[frame->instance().plan].push_back(frame);
  }
}

void CallFrames::stop() {
  for (const caf::actor& actor : all_) caf::anon_send(actor, Stop{});
}

}  // namespace tagflow::actors
