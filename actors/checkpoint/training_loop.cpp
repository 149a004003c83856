#include "actors/checkpoint/training_loop.h"

#include <optional>
#include <utility>

#include "actors/session/session.h"
#include "graph/fault.h"

namespace tagflow::actors {
namespace {

void warn(const TrainingOptions& options, const Status& status) {
  if (!status.ok() && options.on_failed_save) options.on_failed_save(status);
}

// Returns the number of steps that the variables have behind them.
Result<int64_t> begin(const TrainingOptions& options, Session& session,
                      Saver& saver) {
  TAGFLOW_ASSIGN(const auto restored, saver.restore());
  if (restored) return restored->step;
  if (options.init) TAGFLOW_RETURN_IF_ERROR(options.init(session));
  // So that a restart before the first checkpoint has the same seed. Errors of
  // the folder are found before any step, too.
  Status saved = saver.save(0);
  if (saved.ok()) saved = saver.wait();
  // The first step may initialize the variables.
  if (saved.code() != Code::kFailedPrecondition) TAGFLOW_RETURN_IF_ERROR(saved);
  return 0;
}

Status run_once(const TrainingOptions& options) {
  TAGFLOW_ASSIGN(const auto session, options.make_session());
  // First, since it places the variables.
  TAGFLOW_ASSIGN(const auto step, options.make_step(*session));
  TAGFLOW_ASSIGN(const auto saver, Saver::create(*session, options.saver));
  TAGFLOW_ASSIGN(int64_t done, begin(options, *session, *saver));
  while (done < options.steps) {
    TAGFLOW_RETURN_IF_ERROR(step(++done));
    warn(options, saver->save_if_due(done));
  }
  warn(options, saver->wait());
  if (saver->saved_step() != done) TAGFLOW_RETURN_IF_ERROR(saver->save(done));
  return saver->close();
}

}  // namespace

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
