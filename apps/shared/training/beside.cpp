#include "apps/shared/training/beside.h"

#include <utility>

#include "graph/fault.h"

namespace tagflow::training {

BesideRuns::BesideRuns(actors::Session& session,
                       const std::vector<BesideRun>& runs, int64_t first)
    : session_(session) {
  options_.cancel.emplace();
  try {
    for (const BesideRun& run : runs)
      threads_.emplace_back([this, &run, first] { repeat(run, first); });
  } catch (...) {
    // There is no destructor yet that would do it.
    static_cast<void>(stop());
    throw;
  }
}

Status BesideRuns::stop() {
  is_over_ = true;
  options_.cancel->cancel();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
  const std::lock_guard lock(mutex_);
  return error_;
}

void BesideRuns::repeat(const BesideRun& run, int64_t first) {
  Status status = guarded("training", [&]() -> Status {
    TAGFLOW_ASSIGN(const actors::Callable call,
                   session_.make_callable(run.feeds, {}, run.targets));
    for (int64_t i = first; !is_over_; ++i)
      TAGFLOW_RETURN_IF_ERROR(run_once(call, run, i));
    return {};
  });
  if (status.ok() || is_over_) return;
  const std::lock_guard lock(mutex_);
  if (error_.ok()) error_ = std::move(status);
  has_failed_ = true;
}

Status BesideRuns::run_once(const actors::Callable& call, const BesideRun& run,
                            int64_t index) {
  TAGFLOW_ASSIGN(const std::vector<Tensor> batch, run.batch(index));
  return call(batch, options_).status();
}

}  // namespace tagflow::training
