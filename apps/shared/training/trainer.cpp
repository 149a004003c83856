#include "apps/shared/training/trainer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <optional>

#include "actors/session/queue_runners.h"
#include "apps/shared/program/owned_session.h"
#include "apps/shared/runs/progress.h"
#include "apps/shared/runs/run_names.h"
#include "apps/shared/runs/watched_run.h"
#include "apps/shared/training/beside.h"
#include "apps/shared/training/folder.h"
#include "apps/shared/training/history.h"
#include "apps/shared/training/trainer_parts.h"
#include "apps/shared/training/training_summaries.h"

namespace tagflow::training {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// "loss 0.3127, accuracy 0.8821".
std::string format_metrics(const std::vector<Metric>& metrics,
                           std::span<const float> values) {
  std::string text;
  for (size_t i = 0; i < metrics.size(); ++i)
    text += fmt::format("{}{} {:.4f}", i == 0 ? "" : ", ", metrics[i].name,
                        values[i]);
  return text;
}

// One training; see train().
class Trainer {
 public:
  Trainer(apps::OwnedSession& session, const Trainee& trainee,
          const TrainerOptions& options)
      : owned_(session),
        session_(*session),
        trainee_(trainee),
        options_(options),
        watched_(*session, !trainee.beside.empty() || !trainee.runners.empty(),
                 kPatience),
        means_(trainee.step.metrics.size()) {
    run_.cancel = watched_.token();
    show_page();
    outcome_.steps = options.epochs * trainee.steps_per_epoch;
  }

  Outcome run() {
    apps::Failure failure = start();
    if (failure.exit_code == apps::ExitCode::kOk)
      failure = apps::run_time_error(run_and_finish());
    if (failure.exit_code == apps::ExitCode::kRunTimeError)
      failure = watched_.failure_of(std::move(failure.status));
    outcome_.failure = std::move(failure);
    if (evaluated_ != outcome_.step) outcome_.test.clear();
    // A training that has lost a worker may be started again.
    if (options_.page != nullptr &&
        outcome_.failure.exit_code != apps::ExitCode::kPeerLost)
      options_.page->say_end();
    return std::move(outcome_);
  }

 private:
  // Waits for the current step, since half a step must not be saved.
  static constexpr std::chrono::seconds kPatience{10};

  void show_page() {
    if (options_.page == nullptr) return;
    apps::live::LivePage& page = *options_.page;
    owned_.keep(page.share());
    run_.inspector = &page.inspector();
    page.set_can_watch(session_.options().backend == nullptr);
    auto names = find_names();
    // What is wrong with them, the first run of each says.
    if (names.ok()) names_ = std::move(*names);
    shown_.emplace(&page, session_, names_ ? &*names_ : nullptr);
  }

  // Of all runs that viewers may watch.
  Result<apps::RunNames> find_names() {
    const Phase& step = trainee_.step;
    std::vector<std::string> fetches = tensors_of({&step.metrics});
    TAGFLOW_ASSIGN(
        apps::RunNames names,
        apps::RunNames::of(session_, step.feeds, fetches, {trainee_.train}));
    for (const std::string& once : {trainee_.init, trainee_.begin})
      if (!once.empty())
        TAGFLOW_RETURN_IF_ERROR(names.add(session_, {}, {}, {once}));
    if (trainee_.evaluation_batches > 0)
      TAGFLOW_RETURN_IF_ERROR(
          names.add(session_, trainee_.evaluation.feeds,
                    tensors_of({&trainee_.evaluation.metrics}), {}));
    if (options_.summaries.empty()) return names;
    const auto told = tensors_of({&trainee_.numbers, &trainee_.spreads});
    if (!told.empty())
      TAGFLOW_RETURN_IF_ERROR(names.add(session_, {}, told, {}));
    if (trainee_.summary.empty()) return names;
    fetches.push_back(trainee_.summary);
    TAGFLOW_RETURN_IF_ERROR(
        names.add(session_, step.feeds, fetches, {trainee_.train}));
    return names;
  }

  bool is_over() const {
    return outcome_.step >= outcome_.steps || watched_.is_interrupted() ||
           (options_.stop_at > 0 && outcome_.step >= options_.stop_at);
  }

  apps::Failure start() {
    const std::string& folder = options_.checkpoints.save;
    const auto interval =
        apps::parse_save_every(options_.checkpoints.save_every);
    if (!interval.ok()) return apps::usage_error(interval.status());
    save_steps_ = interval->steps;
    if (options_.is_fresh) {
      Status status = remove_training(folder);
      if (!status.ok()) return apps::run_time_error(std::move(status));
    }
    if (Status same = check_subject(folder, trainee_.subject); !same.ok())
      return apps::run_time_error(std::move(same));
    apps::CheckpointOptions checkpoints = options_.checkpoints;
    checkpoints.init = {trainee_.init};
    apps::Failure failure = checkpoints_.start(checkpoints, session_, {}, run_);
    if (failure.exit_code != apps::ExitCode::kOk) return failure;
    if (Status kept = keep_subject(folder, trainee_.subject); !kept.ok())
      return apps::run_time_error(std::move(kept));
    outcome_.step = checkpoints_.last_step();
    std::vector<std::string> names;
    for (const Metric& metric : trainee_.step.metrics)
      names.push_back(metric.name);
    auto history = History::open(history_file(folder), names, outcome_.step);
    if (!history.ok()) return apps::run_time_error(std::move(history).status());
    history_ = std::move(history).value();
    if (options_.summaries.empty()) return {};
    auto summaries = TrainingSummaries::open(session_, trainee_,
                                             options_.summaries, outcome_.step);
    if (!summaries.ok())
      return apps::run_time_error(std::move(summaries).status());
    summaries_ = std::move(summaries).value();
    owned_.keep(summaries_);
    return {};
  }

  Status run_and_finish() {
    Status status = run_steps();
    if (!status.ok()) {
      checkpoints_.stop();
      return status;
    }
    if (trainee_.runners.empty()) TAGFLOW_RETURN_IF_ERROR(save_last());
    TAGFLOW_RETURN_IF_ERROR(
        draw_losses(loss_picture(options_.checkpoints.save), *history_));
    if (!watched_.is_interrupted()) return evaluate_last();
    return error(Code::kCancelled,
                 "[train] it ended after step {} of {}, which is saved",
                 outcome_.step, outcome_.steps);
  }

  Status run_steps() {
    TAGFLOW_ASSIGN(const actors::Callable call,
                   make_callable(session_, trainee_.step, {trainee_.train}));
    first_step_ = outcome_.step;
    if (!trainee_.begin.empty())
      TAGFLOW_RETURN_IF_ERROR(
          session_.run({}, {}, {trainee_.begin}, run_).status());
    if (summaries_ != nullptr && !trainee_.summary.empty()) {
      TAGFLOW_ASSIGN(telling_,
                     make_callable(session_, trainee_.step, {trainee_.train},
                                   {trainee_.summary}));
    }
    BesideRuns beside(session_, trainee_.beside, first_step_ + 1);
    actors::Coordinator fillers;
    if (!trainee_.runners.empty())
      TAGFLOW_RETURN_IF_ERROR(
          actors::start_queue_runners(session_, trainee_.runners, fillers));
    Status status = repeat_step(call, beside);
    // What they have read is lost when they end.
    if (status.ok() && !trainee_.runners.empty()) status = save_last();
    fillers.request_stop();
    telling_ = {};
    // If one of these failed, the steps have waited for it in vain.
    Status cause = beside.stop();
    if (cause.ok()) cause = fillers.join();
    return cause.ok() ? status : cause;
  }

  // What is written after the last step.
  Status save_last() {
    save();
    // A failure of one of these does not cost the others.
    Status first = checkpoints_.finish();
    const auto note = [&](Status status) {
      if (first.ok()) first = std::move(status);
    };
    note(history_->write());
    if (summaries_ != nullptr) note(summaries_->flush());
    return first;
  }

  bool is_report(int64_t step) const {
    return step % trainee_.steps_per_epoch == 0 ||
           step % options_.report_every == 0;
  }

  Status repeat_step(const actors::Callable& call, const BesideRuns& beside) {
    begin_ = reported_ = saved_ = Clock::now();
    while (!is_over() && !beside.has_failed()) {
      const int64_t step = outcome_.step + 1;
      Status status = run_step(call, step);
      if (!status.ok())
        return std::move(status).with_prefix(fmt::format("[step {}] ", step));
      outcome_.step = step;
      const bool is_epoch = step % trainee_.steps_per_epoch == 0;
      if (is_report(step)) report();
      if (is_report(step) && summaries_ != nullptr)
        TAGFLOW_RETURN_IF_ERROR(summaries_->after_report(step, run_));
      if (is_epoch) TAGFLOW_RETURN_IF_ERROR(end_epoch());
      if (is_report(step) || is_save_due()) save();
    }
    return {};
  }

  Status run_step(const actors::Callable& call, int64_t step) {
    const Clock::time_point begin = Clock::now();
    TAGFLOW_ASSIGN(const std::vector<Tensor> batch, trainee_.step.batch(step));
    // Queues are full while the steps do something else.
    watched_.set_idle(false);
    const bool is_telling = !telling_.is_closed() && is_report(step);
    std::vector<Tensor> told;
    TAGFLOW_ASSIGN(
        std::vector<float> values,
        run_batch(
            is_telling ? telling_ : call, trainee_.step, batch,
            summaries_ == nullptr ? run_ : summaries_->options_of(step, run_),
            &told));
    watched_.set_idle(!trainee_.runners.empty());
    if (is_telling) TAGFLOW_RETURN_IF_ERROR(summaries_->add(step, told[0]));
    if (!std::isfinite(values[0]))
      return error(Code::kOutOfRange,
                   "the {} is {}: a smaller learning rate may help",
                   trainee_.step.metrics[0].name, values[0]);
    means_.add(values, count_rows(trainee_.step, batch));
    if (summaries_ != nullptr)
      TAGFLOW_RETURN_IF_ERROR(summaries_->after_step(step, values));
    history_->add(step, History::Set::kTrain, std::move(values));
    outcome_.seconds += seconds_since(begin);
    rows_ += count_rows(trainee_.step, batch);
    outcome_.examples_per_second = double(rows_) / outcome_.seconds;
    return {};
  }

  void report() {
    const int64_t step = outcome_.step;
    const double rate =
        double(means_.rows()) / std::max(1e-9, seconds_since(reported_));
    const int64_t epoch = (step - 1) / trainee_.steps_per_epoch + 1;
    const double left = seconds_since(begin_) / double(step - first_step_) *
                        double(outcome_.steps - step);
    spdlog::info("epoch {}, step {} of {}: {}, {:.0f} {}/s, {} left", epoch,
                 step, outcome_.steps,
                 format_metrics(trainee_.step.metrics, means_.take()), rate,
                 trainee_.examples, apps::duration_text(left));
    reported_ = Clock::now();
  }

  // Whether a checkpoint may be due. Rows are written first, which costs too
  // much for every step.
  bool is_save_due() const {
    constexpr double kSeconds = 1;
    return (save_steps_ > 0 && outcome_.step % save_steps_ == 0) ||
           seconds_since(saved_) >= kSeconds;
  }

  // The work due after the last step. Rows are written before the checkpoint of
  // their step.
  void save() {
    saved_ = Clock::now();
    warn(history_->write());
    checkpoints_.after_step(outcome_.step);
  }

  // Warns once, and again when a later write fails.
  void warn(const Status& status) {
    if (!status.ok() && !is_failing_) spdlog::warn("{}", status.to_string());
    is_failing_ = !status.ok();
  }

  Status end_epoch() {
    if (trainee_.evaluation_batches == 0) return {};
    TAGFLOW_RETURN_IF_ERROR(evaluate_last());
    history_->add(outcome_.step, History::Set::kTest, outcome_.test);
    if (summaries_ != nullptr)
      TAGFLOW_RETURN_IF_ERROR(
          summaries_->after_evaluation(outcome_.step, outcome_.test));
    const int64_t epoch = outcome_.step / trainee_.steps_per_epoch;
    spdlog::info("epoch {}: on the test set {}", epoch,
                 format_metrics(trainee_.step.metrics, outcome_.test));
    warn(draw_losses(loss_picture(options_.checkpoints.save), *history_));
    reported_ = Clock::now();
    return {};
  }

  // Evaluates after the last step, once.
  Status evaluate_last() {
    if (trainee_.evaluation_batches == 0 || evaluated_ == outcome_.step)
      return {};
    TAGFLOW_ASSIGN(outcome_.test, evaluate(session_, trainee_, run_));
    evaluated_ = outcome_.step;
    return {};
  }

  apps::OwnedSession& owned_;
  actors::Session& session_;
  const Trainee& trainee_;
  const TrainerOptions& options_;
  apps::WatchedRun watched_;
  std::optional<apps::RunNames> names_;
  std::optional<apps::PageOfSession> shown_;  // while there is a page
  actors::RunOptions run_;
  apps::StepCheckpoints checkpoints_;
  std::optional<History> history_;
  std::shared_ptr<TrainingSummaries> summaries_;  // null: none are written
  // The step, with the trainee's summary; empty: it has none.
  actors::Callable telling_;
  bool is_failing_ = false;  // the last write failed, with a warning
  Means means_;              // since the last report
  Clock::time_point begin_, reported_, saved_;
  int64_t save_steps_ = 0;  // between checkpoints; 0: by time
  int64_t first_step_ = 0;  // before this run
  int64_t rows_ = 0;
  std::optional<int64_t> evaluated_;  // the step
  Outcome outcome_;
};

}  // namespace

Outcome train(apps::OwnedSession& session, const Trainee& trainee,
              const TrainerOptions& options) {
  return Trainer(session, trainee, options).run();
}

Outcome train(const graph::Graph& graph, const actors::SessionOptions& session,
              const Trainee& trainee, const TrainerOptions& options) {
  apps::OwnedSession owned;
  Outcome outcome;
  outcome.failure = apps::open_session(graph, session, owned);
  if (outcome.failure.exit_code == apps::ExitCode::kOk)
    outcome = train(owned, trainee, options);
  return outcome;
}

std::string format_tests(const Outcome& outcome, const Trainee& trainee,
                         bool json) {
  std::string text;
  for (size_t i = 0; i < outcome.test.size(); ++i) {
    const std::string& name = trainee.evaluation.metrics[i].name;
    text += json ? fmt::format(", \"test_{}\": {}", name, outcome.test[i])
                 : fmt::format("test {}: {:.4f}\n", name, outcome.test[i]);
  }
  return text;
}

}  // namespace tagflow::training
