// SessionState: what a session is made of; shared by it, its callables and its
// steps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "actors/plan/distribute.h"
#include "actors/plan/state_groups.h"
#include "actors/runtime/device_set.h"
#include "actors/runtime/step.h"
#include "actors/session/executable.h"
#include "actors/session/forms.h"
#include "actors/session/session.h"
#include "actors/session/signature_cache.h"
#include "graph/analysis/validate.h"
#include "graph/graph.h"

namespace tagflow::actors {

// Note [Closing a session]
// Session and Callables are handles; the state also belongs to every step that
// is open, so that it is freed after the last of them, wherever that ends, and
// whoever waits inside of run() for one of them. To close is something else:
// the last handle, or close(), refuses new runs, cancels the open ones and
// waits until they have ended and each `done` has returned - but not on a
// thread that they may need.

// Thread-safe. Lock order: compile_mutex_ before graph_mutex_; steps_mutex_
// before the mutexes of a step.
class SessionState : public std::enable_shared_from_this<SessionState> {
 public:
  // Makes a state where the options have none.
  SessionState(SessionOptions options, std::shared_ptr<DeviceSet> devices);

  Status extend(std::span<const graph::NodeDef> nodes);
  Status extend(const graph::Graph& graph);
  // From the cache, or compiled.
  Result<std::shared_ptr<const Prepared>> prepare(const Signature& signature);

  Result<std::vector<Tensor>> run(
      const std::shared_ptr<const Prepared>& prepared,
      std::span<const Tensor> feeds, const RunOptions& options,
      RunStats* stats);
  // Keeps `prepared`: a `done` may free the caller's before this returns.
  void run_async(std::shared_ptr<const Prepared> prepared,
                 std::span<const Tensor> feeds, const RunOptions& options,
                 Done done);
  Status close(std::optional<std::chrono::nanoseconds> deadline);
  // Whether it was called.
  bool is_closed();
  // A deadline of close() has passed.
  bool is_left();
  // Calls `done` and destroys it. What it throws is a warning.
  void call(Done& done, Result<std::vector<Tensor>> answer,
            const RunStats& stats) const;

  // What a form is for. By default it is the usual one.
  struct Special {
    std::vector<Shape> feed_shapes;  // empty: what the graph says
    bool is_frozen = false;          // for the versions that variables have now
  };
  Result<Form> make_form(const Signature& signature, const Special& special);
  // What the signature is cut into, and why.
  Result<Distribution> explain(const Signature& signature);
  // What is prepared from now on is placed by these.
  Status learn(graph::CostModel costs);
  std::optional<std::string> stalled();
  SessionCounters counters();
  void warn(const std::string& text) const;

  const graph::Graph& graph() const { return graph_; }
  const DeviceSet& device_set() const { return *devices_; }
  const SessionOptions& options() const { return options_; }

 private:
  // A run that cannot start yet, with what starts it.
  struct Waiting;
  // One that waits for its turn. Who claims it starts it; a cancellation before
  // that answers it, and takes it out of the queue.
  class Queued;
  // One that waits for the border.
  class AtBorder;
  using Queue = std::list<std::shared_ptr<Queued>>;

  // compile_mutex_, held for code of the user's that is called meanwhile: pure
  // kernels, which are folded, factories, shape functions, on_warning. If that
  // asks for the lock again, on the same thread: FailedPrecondition.
  class CompileLock;
  // FailedPrecondition, too, where the session is closed.
  Result<CompileLock> lock_compiling();
  // What calls are answered with when the session is closed.
  static Status closed_session();
  // REQUIRES of these: compile_mutex_ and, at least shared, graph_mutex_ are
  // held.
  Result<Request> find_request(const Signature& signature);
  Result<Distribution> distribute(const Request& request, Purpose purpose);
  // Where it is frozen, `frozen` gets the versions of variables that it is for.
  // Null where it would be the usual form.
  Result<std::shared_ptr<Prepared>> compile(const Signature& signature,
                                            const Special& special,
                                            FrozenVariables* frozen);
  // Those of which the graph does not know the whole shape, where that matters.
  std::vector<size_t> find_open_feeds(const Prepared& prepared) const;
  // Checks what the graph was extended by since.
  Status check_graph();
  // Those of the graph as it is.
  const StateGroups& groups();
  void warn_once(std::span<const std::string> warnings);

  Status check_call(const Prepared& prepared, std::span<const Tensor> feeds,
                    const RunOptions& options) const;
  // One for such a run, where there is one; null otherwise.
  std::shared_ptr<const Prepared> pick_form(const Prepared& prepared,
                                            std::span<const Tensor> feeds);
  // Without `on_answer`, somebody waits.
  std::shared_ptr<Step> make_step(
      const Prepared& prepared, const RunOptions& options,
      std::function<void(Step::Answer, const RunStats&)> on_answer);
  // Starts the step, or has it wait for the border or its turn. An error means
  // that it is not open, and that no answer will come.
  Status submit(const std::shared_ptr<Step>& step,
                const std::shared_ptr<const Prepared>& prepared,
                std::span<const Tensor> feeds, bool sync, bool count);
  // The same when it has passed the border, if it has to.
  Status submit_passed(const std::shared_ptr<Step>& step,
                       const std::shared_ptr<const Prepared>& prepared,
                       std::span<const Tensor> feeds, bool sync, bool lend,
                       bool count);
  Status wait_at_border(std::shared_ptr<AtBorder> waiting);
  // It does not wait there any more. REQUIRES: it is open.
  void leave_border(Step& step);
  // Gives back what it has of the border.
  void return_border(Step& step);
  // Has the step wait for its turn. REQUIRES: steps_mutex_ is held.
  Status enqueue(std::shared_ptr<Queued> queued);
  // REQUIRES: steps_mutex_ is held, and somebody else holds `queued`.
  void leave_queue(Queued& queued);
  // While the step waits for something else, it does not count as active: the
  // next one that waits for its turn starts.
  void give_turn(Step& step);
  // It counts again, beyond the limit where need be.
  void take_turn(Step& step);
  // The run whose turn is next, which it has from now on; null where there is
  // none. It is to be started. REQUIRES: steps_mutex_ is held.
  std::shared_ptr<Queued> claim_next();
  // Starts that one, if any, and those after it that may.
  void start_queued(std::shared_ptr<Queued> next);
  void drop_queued(Queued& queued);
  // The step is open no more. Returns claim_next().
  std::shared_ptr<Queued> leave(Step& step);
  void end_step(Step& step, Step::Answer answer, const RunStats& stats);
  void count_answer();

  // "For ever", without overflowing a time point.
  static constexpr std::chrono::nanoseconds kLongestTimeout =
      std::chrono::hours(24 * 365 * 100);

  const SessionOptions options_;
  const std::shared_ptr<DeviceSet> devices_;
  SignatureCache cache_;
  std::mutex compile_mutex_;
  std::atomic<std::thread::id> compiling_thread_;  // who has compile_mutex_
  std::shared_mutex graph_mutex_;
  graph::Graph graph_;
  graph::GrowingCheck check_;          // of graph_
  size_t num_frame_warnings_ = 0;      // of it, that were told
  std::optional<StateGroups> groups_;  // of it, as it was once
  std::set<std::string> warned_;
  graph::CostModel costs_;
  std::mutex steps_mutex_;  // guards the below
  std::condition_variable steps_changed_;
  bool closed_ = false;
  bool is_left_ = false;
  StepList open_;  // started and not over, or queued
  int64_t num_active_ = 0;
  Queue queued_;
  int64_t num_queued_async_ = 0;  // of them, that nobody waits for
  size_t num_unanswered_ = 0;     // asynchronous runs whose `done` is to return
};

// What a Session and its Callables hold: closes the state with the last of
// them.
class SessionHandle {
 public:
  explicit SessionHandle(std::shared_ptr<SessionState> session)
      : state(std::move(session)) {}
  ~SessionHandle();
  SessionHandle(const SessionHandle&) = delete;
  SessionHandle& operator=(const SessionHandle&) = delete;

  std::shared_ptr<SessionState> state;
};

}  // namespace tagflow::actors
