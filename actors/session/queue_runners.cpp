#include "actors/session/queue_runners.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "graph/fault.h"

namespace tagflow::actors {

namespace {

// A close operation does not wait; if it does not answer in time, it is
// cancelled.
constexpr std::chrono::seconds kClosing{30};

// The shared data of the threads of one runner.
class Filler {
 public:
  static Result<std::shared_ptr<Filler>> make(Session& session,
                                              const graph::QueueRunnerDef& def,
                                              Coordinator& coordinator) {
    if (def.enqueue_ops.empty())
      return invalid_argument("there is no enqueue operation");
    auto runner = std::make_shared<Filler>(def, coordinator);
    for (const std::string& op : def.enqueue_ops) {
      TAGFLOW_ASSIGN(Callable call, session.make_callable({}, {}, {op}));
      runner->enqueues_.push_back(std::move(call));
    }
    TAGFLOW_ASSIGN(runner->close_, optional_call(session, def.close_op));
    TAGFLOW_ASSIGN(runner->cancel_, optional_call(session, def.cancel_op));
    runner->running_ = def.enqueue_ops.size();
    return runner;
  }
  Filler(const graph::QueueRunnerDef& def, Coordinator& coordinator)
      : name_(def.queue),
        closed_codes_(def.closed_codes),
        coordinator_(coordinator) {}

  size_t threads() const { return enqueues_.size(); }
  std::string thread_name(size_t i) const {
    return fmt::format("queue runner {} of \"{}\"", i, name_);
  }
  const CancelToken& token() const { return token_; }

  // The body of thread `i`.
  Status fill(size_t i) {
    RunOptions options;
    options.cancel = token_;
    Status status;
    while (status.ok() && !coordinator_.should_stop())
      status = enqueues_[i]({}, options).status();
    if (!status.ok() && !ends_queue(status)) {
      const bool stopped = coordinator_.should_stop();
      // A cancellation by a stop, or by the end of the session, is not an
      // error.
      Status reason;
      if (!stopped && !enqueues_[i].is_closed())
        reason = std::move(status).with_prefix(
            fmt::format("[queue_runner] {}: ", thread_name(i)));
      coordinator_.request_stop(std::move(reason));
    }
    return end_thread();
  }
  // Thread `i` was never started.
  void skip() { (void)end_thread().ok(); }

 private:
  static Result<std::optional<Callable>> optional_call(Session& session,
                                                       const std::string& op) {
    if (op.empty()) return std::optional<Callable>();
    TAGFLOW_ASSIGN(Callable call, session.make_callable({}, {}, {op}));
    return std::optional<Callable>(std::move(call));
  }

  bool ends_queue(const Status& status) const {
    return std::ranges::find(closed_codes_, status.code()) !=
           closed_codes_.end();
  }

  // The last one closes the queue.
  Status end_thread() {
    {
      const std::lock_guard lock(mutex_);
      if (--running_ > 0) return {};
    }
    const bool stopped = coordinator_.should_stop();
    const std::optional<Callable>& last = stopped ? cancel_ : close_;
    if (!last) return {};
    RunOptions options;
    options.timeout = kClosing;
    Status status = (*last)({}, options).status();
    // A queue that a checkpoint has restored may be closed already.
    if (stopped || status.ok() || last->is_closed() ||
        status.code() == Code::kCancelled)
      return {};
    return std::move(status).with_prefix(
        fmt::format("[queue_runner] closing \"{}\": ", name_));
  }

  const std::string name_;
  const std::vector<Code> closed_codes_;
  Coordinator& coordinator_;
  std::vector<Callable> enqueues_;
  std::optional<Callable> close_, cancel_;
  CancelToken token_;
  std::mutex mutex_;
  size_t running_ = 0;  // guarded by mutex_
};

Status make_fillers(Session& session,
                    std::span<const graph::QueueRunnerDef> runners,
                    Coordinator& coordinator,
                    std::vector<std::shared_ptr<Filler>>& made) {
  for (const graph::QueueRunnerDef& def : runners) {
    Result<std::shared_ptr<Filler>> runner =
        Filler::make(session, def, coordinator);
    if (!runner.ok())
      return std::move(runner).status().with_prefix(
          fmt::format("[queue_runner] \"{}\": ", def.queue));
    made.push_back(*std::move(runner));
  }
  return {};
}

}  // namespace

Status start_queue_runners(Session& session,
                           std::span<const graph::QueueRunnerDef> runners,
                           Coordinator& coordinator) {
  const bool was_stopped = coordinator.should_stop();
  std::vector<std::shared_ptr<Filler>> made;
  Status status = guarded("queue_runner", [&] {
    return make_fillers(session, runners, coordinator, made);
  });
  if (!status.ok()) return status;
  for (const auto& runner : made) {
    Status hooked = guarded("queue_runner", [&] {
      coordinator.on_stop(
          [token = runner->token()]() mutable { token.cancel(); });
    });
    if (status.ok()) status = std::move(hooked);
    for (size_t i = 0; i < runner->threads(); ++i) {
      if (status.ok())
        status = guarded("queue_runner", [&] {
          return coordinator.start(runner->thread_name(i),
                                   [runner, i] { return runner->fill(i); });
        });
      if (status.ok()) continue;
      coordinator.request_stop();
      runner->skip();
    }
  }
  // A thread that runs already may have stopped the start of the others; then
  // join() has its error.
  if (!was_stopped && status.code() == Code::kFailedPrecondition) return {};
  return status;
}

}  // namespace tagflow::actors
