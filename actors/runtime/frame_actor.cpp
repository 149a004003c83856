#include "actors/runtime/frame_actor.h"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/send.hpp>

#include "actors/plan/tag.h"
#include "actors/runtime/call_frames.h"
#include "actors/runtime/hold.h"
#include "actors/runtime/tag_text.h"
#include "actors/watch/trace.h"

namespace tagflow::actors {

FrameActor::FrameActor(caf::actor_config& config, const PartitionRun& run,
                       const FramePlan& plan)
    : EngineActor(config, run.policy, run.batches),
      exit_live_(plan.exits.size()) {
  instance_.run = &run;
  instance_.plan = &plan;
  instance_.actor = this;
  instance_.window = plan.parallel_iterations;
  instance_.iterations.push_back(
      spawn_actor<IterationActor, caf::lazy_init + caf::hidden>(
          home_system(), std::ref(instance_)));
  head_ = actor_pointer<IterationActor>(instance_.iterations.front());
}

void FrameActor::on_batch(Batch* batch, Runner& runner) {
  if (batch->step->interrupted()) [[unlikely]] {
    Hold* const hold = batch->step->hold.get();
    if (hold != nullptr && hold->take(*this, batch, nullptr)) return;
    if (batch->step->cancelled()) {
      pool().give(batch);
      return;
    }
  }
  if (batch->kind == BatchKind::kEnter) {
    if (!live_ && !begin(*batch)) {
      pool().give(batch);
      return;
    }
    take_enters(batch, runner);
  } else if (batch->generation != instance_.generation) {
    ++counters_.stale;
    pool().give(batch);
  } else {
    take_exits(batch, runner);
  }
}

bool FrameActor::begin(const Batch& batch) {
  const FramePlan& plan = *instance_.plan;
  instance_.step = batch.step;
  instance_.step_id = batch.step->info.step_id;
  instance_.observer = batch.step->observer;
  instance_.trace = batch.step->trace;
  instance_.watched =
      instance_.observer != nullptr || instance_.trace != nullptr;
  ++instance_.generation;
  instance_.retired.store(0, std::memory_order_relaxed);
  instance_.parent = batch.sender;
  instance_.parent_iteration = batch.iteration;
  instance_.ordinal = batch.ordinal;
  enters_left_ = plan.num_enters;
  constants_left_ = 0;
  sent_ = 0;
  exits_received_ = 0;
  exits_expected_ = 0;
  sent_parent_ = 0;
  if (plan.has_loop_constants)
    for (const ArrivalItem& arrival : plan.arrivals)
      constants_left_ += arrival.is_constant ? 1 : 0;
  std::fill(exit_live_.begin(), exit_live_.end(), uint8_t(0));
  if (!plan.is_root()) {
    const FrameInstance& outer =
        static_cast<const IterationActor*>(batch.sender)->frame();
    instance_.tag =
        frame_tag(outer.tag, batch.iteration,
                  plan.is_body ? outer.plan->calls[batch.ordinal]->name_hash
                               : plan.name_hash);
    instance_.call_depth = outer.call_depth + (plan.is_body ? 1 : 0);
    ++counters_.frames;
    const int max_depth = instance_.run->max_call_depth;
    if (instance_.call_depth > max_depth) {
      refuse_call(outer, fmt::format("calls nest deeper than {}", max_depth));
      return false;
    }
    if (plan.is_body && instance_.run->calls->is_full()) {
      refuse_call(outer, fmt::format("more than {} calls are open at once",
                                     instance_.run->max_open_calls));
      return false;
    }
  }
  live_ = true;
  constants_.clear();
  // Iterations read it while it grows: its elements must not move.
  constants_.reserve(constants_left_);
  constant_sets_.clear();
  constant_sets_.push_back({++epoch_, false, {}});
  constants_seen_ = false;
  if (instance_.watched) report_start();
  return true;
}

void FrameActor::watch(Observer* observer) {
  instance_.observer = observer;
  instance_.watched = observer != nullptr || instance_.trace != nullptr;
}

void FrameActor::report_start() {
  const Location location = instance_.location(instance_.tag);
  Location caller = location;
  if (!instance_.plan->is_root()) {
    const auto* parent = static_cast<const IterationActor*>(instance_.parent);
    caller = parent->frame().location(parent->frame().tag);
    caller.tag.iteration = instance_.parent_iteration;
  }
  if (instance_.observer != nullptr)
    instance_.observer->on_frame_start(location, caller);
  if (instance_.trace != nullptr)
    instance_.trace_number = instance_.trace->add_frame(
        *instance_.plan, location.device, instance_.tag, caller.tag);
}

void FrameActor::refuse_call(const FrameInstance& outer,
                             const std::string& why) {
  const CallItem& call = *outer.plan->calls[instance_.ordinal];
  instance_.step->fail(
      error(Code::kResourceExhausted,
            "[call] {}: node \"{}\" calls function \"{}\" from iteration "
            "\"{}\"; does the recursion end?",
            why, outer.plan->nodes[call.node].node->name(),
            instance_.plan->name, tag_text(outer, instance_.parent_iteration)));
}

ConstSet& FrameActor::open_constants() {
  if (constants_seen_) {
    constant_sets_.push_back({++epoch_, false, {}});
    constants_seen_ = false;
  }
  return constant_sets_.back();
}

void FrameActor::take_enters(Batch* batch, Runner& runner) {
  const FramePlan& plan = *instance_.plan;
  // Loop constants go into the set; the other tokens stay in the batch, which
  // is sent on to iteration 0.
  size_t kept = 0;
  for (Token& token : batch->tokens) {
    if (plan.arrivals[token.slot].is_constant) {
      ConstSet& set = open_constants();
      constants_.push_back(std::move(token));
      set.tokens = constants_;
      if (--constants_left_ == 0)
        set.steady = std::ranges::none_of(constants_, &Token::is_dead);
    } else {
      Token& slot = batch->tokens.begin()[kept++];
      if (&slot != &token) slot = std::move(token);
    }
    --enters_left_;
  }
  batch->tokens.truncate(kept);
  batch->kind = BatchKind::kTokens;
  batch->iteration = 0;
  batch->generation = instance_.generation;
  batch->is_last = enters_left_ == 0;
  batch->count = ++sent_;
  batch->exits = 0;
  batch->constants = plan.has_loop_constants ? &constant_sets_.back() : nullptr;
  constants_seen_ = true;
  ++counters_.hops;
  runner.post(head_, batch);
}

void FrameActor::take_exits(Batch* batch, Runner& runner) {
  const FramePlan& plan = *instance_.plan;
  for (Token& token : batch->tokens) {
    const ExitItem& exit = plan.exits[token.slot];
    if (exit_live_[token.slot]) {
      instance_.step->fail(invalid_argument(
          "[Exit] node \"{}\" was live a second time, in iteration \"{}\"; "
          "a loop's predicate must be false exactly once",
          exit.node->name(), tag_text(instance_, batch->iteration)));
      pool().give(batch);
      return;
    }
    exit_live_[token.slot] = 1;
    token.slot = exit.parent_arrival;
  }
  if (batch->is_last) last_iteration_ = batch->iteration;
  batch->ordinal = instance_.ordinal;
  batch->iteration = instance_.parent_iteration;
  ++exits_received_;
  if (batch->is_last) exits_expected_ = batch->count;
  batch->is_last = exits_received_ == exits_expected_;
  batch->count = ++sent_parent_;
  if (batch->is_last) {
    for (size_t i = 0; i < plan.exits.size(); ++i) {
      if (!exit_live_[i]) batch->tokens.add(plan.exits[i].parent_arrival, true);
    }
    end();
  }
  ++counters_.hops;
  runner.post(instance_.parent, batch);
}

void FrameActor::end() {
  live_ = false;
  if (instance_.observer != nullptr)
    instance_.observer->on_frame_end(instance_.location(instance_.tag));
  // All iterations are retired: the frame owns their state again.
  for (const caf::actor& actor : instance_.iterations)
    actor_pointer<IterationActor>(actor)->release_values();
  constant_sets_.clear();
  constants_.clear();
}

void FrameActor::collect(Counters& counters) const {
  counters.frames += counters_.frames;
  counters.hops += counters_.hops;
  counters.stale += counters_.stale;
  for (const caf::actor& actor : instance_.iterations)
    actor_pointer<IterationActor>(actor)->collect(counters);
}

void FrameActor::reset() {
  live_ = false;
  for (const caf::actor& actor : instance_.iterations)
    actor_pointer<IterationActor>(actor)->reset();
  constant_sets_.clear();
  constants_.clear();
}

void FrameActor::on_stop() {
  for (const caf::actor& actor : instance_.iterations)
    caf::anon_send(actor, Stop{});
  // The handles are kept until the end of this actor, since a ring actor may
  // still have a pointer to another one.
}

}  // namespace tagflow::actors
