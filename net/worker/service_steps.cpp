// The steps of a worker: from a Run to its Done.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/fault.h"
#include "net/transfer/reports.h"
#include "net/transfer/trace_bytes.h"
#include "net/transfer/values.h"
#include "net/worker/service.h"

namespace tagflow::net {
namespace {

// What a master may have here at a time.
constexpr size_t kMostSteps = 4096;
// For a part to come to rest, when it is looked at.
constexpr std::chrono::microseconds kMostPatience = std::chrono::seconds(1);

}  // namespace

// Tells the first error of a step.
class Service::FailureHook final : public devices::CancelHook {
 public:
  FailureHook(Service& service, const actors::Step& step)
      : service_(service), step_(step) {}

 private:
  void on_cancel() override {
    service_.fail_step(step_.info.step_id, step_.error());
  }

  Service& service_;
  const actors::Step& step_;
};

Status Service::on_run(Run run) {
  Status refused;  // the step alone: the link has others
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return reason_;
    WorkerSteps::Actions actions;
    TAGFLOW_RETURN_IF_ERROR(parts_.on_run(run.step, actions));
    if (running_.size() >= kMostSteps) {
      refused = error(Code::kResourceExhausted,
                      "[net] a worker runs {} steps at a time", kMostSteps);
    } else {
      Running& running = running_.emplace(run.step, Running()).first->second;
      if (run.may_be_held)
        running.hold = std::make_shared<actors::Hold>(
            run.stop ? std::optional<actors::StopPoint>(
                           {run.stop->frame, run.stop->iteration})
                     : std::nullopt);
    }
    counts_.on_begin();
    if (!std::exchange(is_looking_, true)) changed_.notify_all();
  }
  if (!refused.ok()) {
    // Its feeds may come or not: it does not wait for them.
    forget_values(feeds_, run.feeds);
    end_step(run.step, refused, {}, false);
    return {};
  }
  auto feeds = std::exchange(run.feeds, {});
  collect_values(feeds_, std::move(feeds),
                 [this, run = std::move(run)](
                     Result<std::vector<std::pair<uint32_t, Tensor>>> values) {
                   start_step(run, std::move(values));
                 });
  return {};
}

void Service::start_step(
    const Run& run, Result<std::vector<std::pair<uint32_t, Tensor>>> feeds) {
  const Status status = guarded("net", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(feeds.status());
    return try_start_step(run, std::move(*feeds));
  });
  if (!status.ok()) end_step(run.step, status, {}, false);
}

Status Service::try_start_step(const Run& run,
                               std::vector<std::pair<uint32_t, Tensor>> feeds) {
  const auto registered = executables_.find(run.executable);
  if (registered == nullptr)
    return error(Code::kFailedPrecondition,
                 "[net] executable {} is not registered", run.executable);
  std::vector<Tensor> all(registered->num_feeds);
  for (auto& [index, tensor] : feeds) {
    if (index >= all.size())
      return invalid_argument("[net] there are {} feeds, and no feed {}",
                              all.size(), index);
    all[index] = std::move(tensor);
  }
  for (const Registered::Feed& feed : registered->feeds) {
    const Tensor& tensor = all[feed.index];
    if (!tensor.valid())
      return invalid_argument("[net] {} is not fed", feed.name);
    if (tensor.dtype() != feed.dtype || !feed.shape.accepts(tensor.shape()))
      return invalid_argument("[net] {} is fed with {}", feed.name,
                              tensor.describe());
  }
  const auto step = std::make_shared<actors::Step>(
      run.step, registered->executable->num_fetches());
  step->info.seed = run.seed;
  step->info.state = &state_.resources();
  step->info.random_runs = &step->random.emplace(state_.run_counts());
  step->on_resumed = [this](const actors::Step& resumed) {
    resume_step(resumed.info.step_id);
  };
  const auto hook = std::make_shared<FailureHook>(*this, *step);
  step->info.cancels->add(hook);
  std::shared_ptr<actors::Trace> trace;
  if (run.trace_words > 0)
    trace = std::make_shared<actors::Trace>(
        size_t(std::min(run.trace_words, kMostTraceWords)));
  step->trace = trace.get();
  step->on_over = [this, registered, hook, trace](
                      actors::Step& over, actors::Step::Answer answer,
                      const actors::RunStats& stats) {
    hook->claim();
    // Closes the gate of changes.
    over.answer(std::vector<Tensor>());
    end_step(over.info.step_id, std::move(answer),
             {stats, registered->fetches,
              trace == nullptr ? std::nullopt : tensor_of(trace->part())},
             over.info.commits->was_entered());
  };
  Status cause;
  {
    const std::lock_guard lock(mutex_);
    Running& running = running_.at(run.step);
    running.step = step;
    step->hold = running.hold;
    cause = is_closed_ ? reason_ : running.cause;
  }
  if (!cause.ok()) step->stop(cause);
  // The thread of the bulk links is not lent.
  const bool lend = threads_.small->is_current();
  return registered->executable->start(step, all, lend, run.has_stats);
}

void Service::on_abort(const Abort& abort) {
  const Status cause = abort.cause.code == Code::kOk
                           ? error(Code::kAborted, "[net] the step is aborted")
                           : status_of(abort.cause);
  WorkerSteps::Actions actions;
  parts_.on_abort(abort.step, cause, actions);
  for (const WorkerSteps::Action& action : actions) {
    if (const auto* tell = std::get_if<WorkerSteps::TellDone>(&action))
      static_cast<void>(send_done(*tell, {}, tell->done.status, {}));
    if (!std::holds_alternative<WorkerSteps::Fail>(action)) continue;
    // The master knows the cause; the part says what it waited for.
    const Status stop(cause.code(), "");
    std::shared_ptr<actors::Step> step;
    {
      const std::lock_guard lock(mutex_);
      const auto found = running_.find(abort.step);
      if (found == running_.end()) return;
      found->second.cause = stop;
      step = found->second.step;
    }
    if (step != nullptr) step->stop(stop);
  }
}

void Service::on_ask(const Ask& ask) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(ask.step);
  if (found == running_.end()) return;  // its Done is on its way
  Report report = look(ask.step, found->second);
  found->second.quiet.on_asked();
  report.round = ask.round;
  send_report(report, found->second);
}

std::shared_ptr<actors::Hold> Service::hold_of(uint64_t step) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(step);
  return found == running_.end() ? nullptr : found->second.hold;
}

// On the thread of run(), since the part may need a while to come to rest.
Status Service::on_look(const Look& look) {
  return post([this, look] {
    Seen seen{.step = look.step, .request = look.request};
    const auto patience = std::chrono::microseconds(
        std::min<uint64_t>(look.patience_us, kMostPatience.count()));
    // Without memory for it, there is no view.
    static_cast<void>(guarded("net", [&] {
      const auto hold = hold_of(look.step);
      if (hold == nullptr) return;
      seen.has_view = hold->look(patience, [&](actors::Step& step) {
        seen.view = actors::view_of(step);
      });
    }));
    static_cast<void>(guarded("net", [&] { return master_->send(seen); }));
  });
}

Status Service::on_steer(Steer steer) {
  return post([this, steer = std::move(steer)] {
    const auto hold = hold_of(steer.step);
    if (hold == nullptr) return;
    switch (steer.what) {
      case Steer::What::kGoOn:
        return hold->stop_at(std::nullopt);
      case Steer::What::kStop:
        return hold->stop_at(actors::StopPoint{steer.frame, steer.iteration});
      case Steer::What::kNext:
        return hold->advance(steer.frame);
    }
  });
}

Status Service::on_release(const Release& release) {
  TAGFLOW_ASSIGN(auto released, executables_.release(release.executable));
  // It may be large, and is destroyed on the thread of run().
  if (released == nullptr) return {};
  return post([released = std::move(released)] {});
}

void Service::fail_step(uint64_t step, const Status& status) {
  WorkerSteps::Actions actions;
  parts_.on_error(step, status, actions);
  for (const WorkerSteps::Action& action : actions)
    if (const auto* tell = std::get_if<WorkerSteps::TellFailed>(&action))
      static_cast<void>(master_->send(
          Abort{step, outcome_of(tell->status, options_.task.to_string())}));
}

void Service::tell_of_failure(uint64_t step, const Status& cause) const {
  static_cast<void>(guarded([&] {
    Event event = Event::news(cause);
    event.step = step;
    options_.on_event(event);
  }));
}

void Service::end_step(uint64_t step, actors::Step::Answer answer,
                       const Findings& findings, bool has_committed) {
  // Whoever has the answer finds it counted.
  counts_.on_end(answer.status().code());
  WorkerSteps::Actions actions;
  const MessageCounts counts =
      parts_.on_over(step, answer.status(), has_committed, actions);
  for (const WorkerSteps::Action& action : actions) {
    const auto* tell = std::get_if<WorkerSteps::TellDone>(&action);
    if (tell == nullptr) continue;
    if (tell->done.is_cause) tell_of_failure(step, tell->done.status);
    const Status sent = guarded(
        "net", [&] { return send_done(*tell, counts, answer, findings); });
    if (sent.ok()) continue;
    const Status told = guarded("net", [&] {
      WorkerSteps::TellDone failed = *tell;
      failed.done.status = sent;
      failed.done.is_cause = true;
      return send_done(failed, counts, sent, {});
    });
    // The master waits for it.
    if (!told.ok()) close(told);
  }
  const std::lock_guard lock(mutex_);
  running_.erase(step);
  ++num_finished_;
  // Otherwise nobody waits for the end of steps.
  if (is_closed_) changed_.notify_all();
}

Status Service::send_done(const WorkerSteps::TellDone& tell,
                          MessageCounts counts,
                          const actors::Step::Answer& answer,
                          const Findings& findings) {
  Done done{.step = uint64_t(tell.step),
            .outcome = outcome_of(tell.done.status, options_.task.to_string()),
            .is_cause = tell.done.is_cause,
            .has_committed = tell.done.has_committed,
            .sent = counts.sent,
            .received = counts.received,
            .stats = numbers_of(findings.stats)};
  ValueSender sender(*master_);
  if (findings.trace)
    TAGFLOW_RETURN_IF_ERROR(
        sender.put(*findings.trace, "the trace", done.trace));
  if (answer.ok()) {
    for (uint32_t i = 0; i < answer->size(); ++i) {
      if (!(*answer)[i].valid()) continue;
      Done::Fetch& fetch = done.fetches.emplace_back();
      fetch.index = i;
      TAGFLOW_RETURN_IF_ERROR(
          sender.put((*answer)[i], findings.fetches[i], fetch.value));
    }
  }
  return sender.send(done);
}

}  // namespace tagflow::net
