#include "actors/session/joined_executable.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "devices/cancellation.h"
#include "graph/fault.h"

namespace tagflow::actors {

void add_stats(const RunStats& part, RunStats& all) {
  for (const auto count : RunStats::kSums) all.*count += part.*count;
  all.max_in_flight = std::max(all.max_in_flight, part.max_in_flight);
}

// What the parts of one step have in common.
struct JoinedExecutable::Joint {
  std::mutex mutex;  // guards the below
  RunStats stats;
  Status last;  // error of a part
};

// The wait of a step for one part. Only `done` ends it, since the part may
// change state until then; a cancellation aborts the part.
class JoinedExecutable::PartWait final : public devices::CancelHook {
 public:
  PartWait(Step& step, RemotePart& part, std::shared_ptr<Joint> joint)
      : step_(step),
        id_(step.info.step_id),
        part_(part),
        joint_(std::move(joint)) {
    named_.wait = this;
  }

  // REQUIRES: the caller has a unit of the step.
  static void begin(const std::shared_ptr<PartWait>& wait,
                    const RemotePart::Order& order) {
    Step& step = wait->step_;
    step.begin_wait(wait->named_);
    if (!step.info.cancels->add(wait)) wait->on_cancel();
    try {
      wait->part_.start(
          order, [wait](RemotePart::Done done) { wait->end(std::move(done)); });
    } catch (...) {
      wait->end({current_fault("session"), {}});
    }
    Phase before = Phase::kStarting;
    if (!wait->phase_.compare_exchange_strong(before, Phase::kStarted))
      wait->abort();
  }

 private:
  struct Named final : StepWait {
    std::string name() const override {
      return wait->part_.describe_wait(wait->id_);
    }
    std::string reason() const override {
      return wait->part_.describe_stall(wait->id_);
    }
    bool is_for_state() const override { return !reason().empty(); }
    const PartWait* wait = nullptr;
  };
  enum class Phase : uint8_t { kStarting, kStarted, kCancelled };

  void on_cancel() override {
    if (phase_.exchange(Phase::kCancelled) == Phase::kStarted) abort();
  }
  // An Abort follows the start, so begin() sends it if it was early. REQUIRES:
  // the step is cancelled, so that its error is there.
  void abort() { part_.abort(id_, step_.error()); }

  // The step may be over afterwards.
  void end(RemotePart::Done done) {
    if (ended_.exchange(true)) return;
    claim();
    if (done.fetches.ok()) {
      for (size_t i = 0; i < done.fetches->size(); ++i) {
        Tensor& value = (*done.fetches)[i];
        if (value.valid())
          step_.fetches[i] = {std::move(value), FetchSlot::kLive};
      }
    } else {
      step_.fail(done.fetches.status());
    }
    {
      const std::lock_guard lock(joint_->mutex);
      add_stats(done.stats, joint_->stats);
      if (!done.fetches.ok()) joint_->last = std::move(done.fetches).status();
    }
    step_.end_wait(named_);
    step_.drop_activity();
  }

  Step& step_;  // valid as long as the wait lasts
  const uint64_t id_;
  RemotePart& part_;  // of the executable, which the step keeps
  const std::shared_ptr<Joint> joint_;
  Named named_;
  std::atomic<Phase> phase_{Phase::kStarting};
  std::atomic<bool> ended_{false};
};

Status JoinedExecutable::start(const std::shared_ptr<Step>& step,
                               std::span<const Tensor> feeds, bool /*lend*/,
                               bool count) {
  if (step->observer != nullptr)
    return error(Code::kUnimplemented,
                 "[session] an observer is local: it would see no node of a "
                 "run over other processes");
  std::vector<std::shared_ptr<PartWait>> waits;
  const auto joint = std::make_shared<Joint>();
  try {
    for (const auto& part : parts_)
      waits.push_back(std::make_shared<PartWait>(*step, *part, joint));
    step->on_quiet = [this, joint](Step& quiet) {
      const RunStats stats = quiet.counts ? joint->stats : RunStats();
      Step::Answer answer = outcome(quiet, joint->last);
      if (quiet.on_over) {
        quiet.on_over(quiet, std::move(answer), stats);
      } else {
        quiet.answer_on_worker(std::move(answer), stats);
      }
    };
  } catch (...) {
    return current_fault("session");
  }
  step->executable = shared_from_this();
  step->counts = count;
  step->grace = Step::kRemoteGrace;
  step->keep_alive();
  step->add_activity();  // the start itself
  const RemotePart::Order order{*step, feeds, count};
  for (const auto& wait : waits) PartWait::begin(wait, order);
  step->drop_activity();
  return {};
}

Step::Answer JoinedExecutable::outcome(Step& step, const Status& last) const
    try {
  if (Status error = step.error(); !error.ok())
    return step.was_stopped() && !last.ok() ? last : error;
  std::vector<Tensor> values;
  values.reserve(step.fetches.size());
  for (size_t i = 0; i < step.fetches.size(); ++i) {
    if (step.fetches[i].state != FetchSlot::kLive)
      return error(Code::kInternal, "[session] no process gave \"{}\"",
                   fetches_[i]);
    values.push_back(std::move(step.fetches[i].value));
  }
  return values;
} catch (...) {
  return current_fault("session");
}

}  // namespace tagflow::actors
