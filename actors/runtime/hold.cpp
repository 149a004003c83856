#include "actors/runtime/hold.h"

#include <utility>

#include "actors/runtime/engine_actor.h"

namespace tagflow::actors {

struct Hold::Wait final : StepWait {
  Wait() { is_hold = true; }
  std::string name() const override { return "whoever looks at the step"; }
};

Hold::Hold(std::optional<StopPoint> stop) : stop_(std::move(stop)) {}
Hold::~Hold() = default;

// A unit of a step, if it is not over.
class Hold::Unit {
 public:
  explicit Unit(std::shared_ptr<Step> step) : step_(std::move(step)) {
    if (step_ != nullptr && !step_->try_enter()) step_ = nullptr;
  }
  ~Unit() { end(); }
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  // Null: it is over. Stays alive as long as this.
  Step* step() const { return step_.get(); }
  void end() {
    if (step_ != nullptr && !std::exchange(has_ended_, true))
      step_->drop_activity();
  }

 private:
  std::shared_ptr<Step> step_;
  bool has_ended_ = false;
};

void Hold::attach(const std::shared_ptr<Step>& step, RunContext& context) {
  {
    const std::lock_guard lock(mutex_);
    step_ = step;
    context_ = &context;
    set_stop(step.get(), std::move(stop_));
  }
  if (!step->info.cancels->add(shared_from_this())) on_cancel();
}

void Hold::set_remote(std::weak_ptr<RemoteHold> remote) {
  const std::lock_guard lock(mutex_);
  remote_ = std::move(remote);
}

std::shared_ptr<RemoteHold> Hold::remote() {
  const std::lock_guard lock(mutex_);
  return remote_.lock();
}

std::optional<StopPoint> Hold::stop() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

std::shared_ptr<Step> Hold::step() {
  const std::lock_guard lock(mutex_);
  return step_.lock();
}

// --- The engine --------------------------------------------------------------

bool Hold::take(EngineActor& actor, Batch* batch, const FrameInstance* begins) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return false;
  if (is_frozen_) {
    parked_.push_back({&actor, batch, begins});
    return true;
  }
  const bool passes = std::exchange(batch->pass, 0) == command_;
  if (passes || begins == nullptr || !stops(*begins, batch->iteration))
    return false;
  stopped_.reserve(stopped_.size() + 1);
  begin_wait(*batch->step);
  stopped_.push_back({&actor, batch, begins});
  return true;
}

bool Hold::stops(const FrameInstance& frame, int64_t iteration) const {
  if (!stop_ || frame.plan->is_root() || iteration < stop_->iteration)
    return false;
  return stop_->frame.empty() ? !frame.plan->is_body
                              : frame.plan->name == stop_->frame;
}

void Hold::on_rest() {
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

void Hold::on_cancel() {
  const std::shared_ptr<Step> step = this->step();
  Freed freed;
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    is_frozen_ = false;
    if (step == nullptr) return;
    set_stop(step.get(), std::nullopt);
    parked_.swap(freed.parked);
    stopped_.swap(freed.stopped);
    end_wait(freed);
  }
  changed_.notify_all();
  go_on(*step, freed);
}

// --- Those who look ----------------------------------------------------------

bool Hold::look(std::chrono::nanoseconds patience,
                const std::function<void(Step&)>& f) {
  Unit unit(this->step());
  if (unit.step() == nullptr) return false;
  Step& step = *unit.step();
  Freed freed;
  bool is_seen = false;
  std::exception_ptr thrown;
  {
    std::unique_lock lock(mutex_);
    // One looks at a time.
    if (is_ended_ || is_frozen_) return false;
    begin_wait(step);
    is_frozen_ = true;
    step.set_held(true, true);
    lock.unlock();
    unit.end();
    lock.lock();
    changed_.wait_for(lock, patience,
                      [&] { return is_ended_ || step.is_waiting(); });
    if (is_ended_) return false;
    if (step.is_waiting()) {
      is_seen = true;
      try {
        f(step);
      } catch (...) {
        thrown = std::current_exception();
      }
    }
    is_frozen_ = false;
    step.set_held(stop_.has_value(), false);
    parked_.swap(freed.parked);
    end_wait(freed);
  }
  go_on(step, freed);
  if (thrown) std::rethrow_exception(thrown);
  return is_seen;
}

void Hold::stop_at(std::optional<StopPoint> stop) {
  command(std::move(stop), false);
}

void Hold::advance(const std::string& frame) {
  command(StopPoint{frame, 0}, true);
}

void Hold::command(std::optional<StopPoint> stop, bool passes) {
  const Unit unit(step());
  Freed freed;
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return;
    set_stop(unit.step(), std::move(stop));
    if (unit.step() == nullptr) return;
    stopped_.swap(freed.stopped);
    for (const Parked& stopped : freed.stopped)
      stopped.batch->pass = passes ? command_ : 0;
    end_wait(freed);
  }
  go_on(*unit.step(), freed);
}

// --- Within the lock ---------------------------------------------------------

void Hold::set_stop(Step* step, std::optional<StopPoint> stop) {
  stop_ = std::move(stop);
  ++command_;
  if (step != nullptr)
    step->set_held(is_frozen_ || stop_.has_value(), is_frozen_);
}

void Hold::begin_wait(Step& step) {
  if (wait_ != nullptr) return;
  wait_ = std::make_unique<Wait>();
  step.begin_wait(*wait_);
}

void Hold::end_wait(Freed& freed) {
  if (!is_frozen_ && parked_.empty() && stopped_.empty())
    freed.wait = std::move(wait_);
}

void Hold::go_on(Step& step, const Freed& freed) {
  if (freed.wait != nullptr) {
    step.end_wait(*freed.wait);
  } else if ((freed.parked.empty() && freed.stopped.empty()) ||
             !step.try_enter()) {
    // With batches that were parked it still waits: it is not over.
    return;
  }
  for (const auto* list : {&freed.parked, &freed.stopped})
    for (const Parked& one : *list) {
      step.add_activity();
      one.actor->accept(one.batch);
    }
  step.drop_activity();
}

}  // namespace tagflow::actors
