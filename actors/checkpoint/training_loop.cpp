#include "actors/checkpoint/training_loop.h"

#include <optional>
#include <utility>

#include "actors/checkpoint/training_run.h"
#include "actors/session/session.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

class SessionRun final : public TrainingRun {
 public:
  static Result<std::unique_ptr<SessionRun>> make(
      const TrainingOptions& options) {
    std::unique_ptr<SessionRun> run(new SessionRun(options));
    TAGFLOW_ASSIGN(run->session_, options.make_session());
    // First, since it places the variables.
    TAGFLOW_ASSIGN(run->step_, options.make_step(*run->session_));
    TAGFLOW_ASSIGN(run->saver_, Saver::create(*run->session_, options.saver));
    return run;
  }

  Result<std::optional<int64_t>> restore() override {
    TAGFLOW_ASSIGN(const auto restored, saver_->restore());
    return restored ? std::optional(restored->step) : std::nullopt;
  }
  Status init() override {
    return options_.init ? options_.init(*session_) : Status();
  }
  Status step(int64_t number) override { return step_(number); }
  Status save(int64_t step) override { return saver_->save(step); }
  Status save_if_due(int64_t step) override {
    return saver_->save_if_due(step);
  }
  Status wait() override { return saver_->wait(); }
  std::optional<int64_t> saved_step() const override {
    return saver_->saved_step();
  }
  Status close() override { return saver_->close(); }

 private:
  explicit SessionRun(const TrainingOptions& options) : options_(options) {}

  const TrainingOptions& options_;
  std::unique_ptr<Session> session_;
  TrainingOptions::Step step_;
  std::unique_ptr<Saver> saver_;
};

// Returns the number of steps that the variables have behind them.
Result<int64_t> begin(TrainingRun& run) {
  TAGFLOW_ASSIGN(const auto restored, run.restore());
  if (restored) return *restored;
  TAGFLOW_RETURN_IF_ERROR(run.init());
  // So that a restart before the first checkpoint has the same seed. Errors of
  // the folder are found before any step, too.
  Status saved = run.save(0);
  if (saved.ok()) saved = run.wait();
  // The first step may initialize the variables.
  if (saved.code() != Code::kFailedPrecondition) TAGFLOW_RETURN_IF_ERROR(saved);
  return 0;
}

Status run_once(const TrainingOptions& options) {
  TAGFLOW_ASSIGN(const auto run, SessionRun::make(options));
  return run_steps(*run, options.steps, options.on_failed_save);
}

}  // namespace

Status run_steps(TrainingRun& run, int64_t steps,
                 const std::function<void(const Status&)>& on_failed_save) {
  const auto warn = [&](const Status& status) {
    if (!status.ok() && on_failed_save) on_failed_save(status);
  };
  TAGFLOW_ASSIGN(int64_t done, begin(run));
  while (done < steps) {
    TAGFLOW_RETURN_IF_ERROR(run.step(++done));
    warn(run.save_if_due(done));
  }
  warn(run.wait());
  if (run.saved_step() != done) TAGFLOW_RETURN_IF_ERROR(run.save(done));
  return run.close();
}

Status run_with_restarts(int restarts,
                         const std::function<Status(int restart)>& attempt) {
  Status status = attempt(0);
  for (int restart = 1;
       restart <= restarts && status.code() == Code::kUnavailable; ++restart)
    status = attempt(restart);
  return status;
}

Status run_training(const TrainingOptions& options) {
  Status last;
  return run_with_restarts(options.restarts, [&](int restart) {
    if (restart > 0 && options.on_restart) options.on_restart(restart, last);
    last = guarded("training", [&] { return run_once(options); });
    return last;
  });
}

}  // namespace tagflow::actors
