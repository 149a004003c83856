// SessionState: the implementation of a session, shared by the session, its
// callables and its steps.
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
#include "actors/session/backend.h"
#include "actors/session/forms.h"
#include "actors/session/served_session.h"
#include "actors/session/session.h"
#include "actors/session/signature_cache.h"
#include "actors/session/turns.h"
#include "graph/analysis/validate.h"
#include "graph/budget.h"
#include "graph/graph.h"

namespace tagflow::actors {

class SessionFunctions;  // actors/session/session_functions.h

// Note [Closing a session]
// Session and Callables are handles. Every open step also owns the state, so
// the state is freed after the last step, on any thread, and while a thread
// inside of run() waits for a step. Closing is different: the last handle, or
// close(), rejects new runs, cancels the open ones, and waits until they have
// ended and each `done` has returned. It does not wait on a thread that the
// runs may need.

// Thread-safe. Lock order: a CompileLock before graph_mutex_; steps_mutex_
// before the mutexes of a step.
class SessionState : public std::enable_shared_from_this<SessionState> {
 public:
  using Clock = graph::Budget::Clock;

  // Makes a shared state if the options have none. `served` is what the backend
  // has opened, if any.
  SessionState(SessionOptions options, std::shared_ptr<DeviceSet> devices,
               std::shared_ptr<ServedSession> served = nullptr);
  ~SessionState();

  Status extend(std::span<const graph::NodeDef> nodes,
                const graph::Graph& functions);
  Status extend(const graph::Graph& graph);
  // Takes the signature from the cache, or compiles it.
  // The time-out and the cancellation of the options end that, and so does
  // close(). The time-out counts from `start`, or else from now.
  Result<std::shared_ptr<const Prepared>> prepare(
      const Signature& signature, const RunOptions& options = {},
      std::optional<Clock::time_point> start = {});

  // The time-out of the run counts from `start`, when the preparation of its
  // signature began, or else from now.
  Result<std::vector<Tensor>> run(
      const std::shared_ptr<const Prepared>& prepared,
      std::span<const Tensor> feeds, const RunOptions& options, RunStats* stats,
      std::optional<Clock::time_point> start = {});
  // Keeps `prepared`: a `done` may free the caller's copy before this returns.
  void run_async(std::shared_ptr<const Prepared> prepared,
                 std::span<const Tensor> feeds, const RunOptions& options,
                 Done done, std::optional<Clock::time_point> start = {});
  Status close(std::optional<std::chrono::nanoseconds> deadline);
  // Whether close() was called.
  bool is_closed();
  // Whether a deadline of close() has passed.
  bool is_left();
  // Calls `done` and destroys it. Its exceptions become warnings.
  void call(Done& done, Result<std::vector<Tensor>> answer,
            const RunStats& stats) const;

  // The runs that a form is for. The default is the usual form.
  struct Special {
    std::vector<Shape> feed_shapes;  // empty: those of the graph
    bool is_frozen = false;          // for the current versions of variables
  };
  // The time-out of a run that waits for the form counts from `start`.
  Result<Form> make_form(const Signature& signature, const Special& special,
                         const RunOptions& options = {},
                         Clock::time_point start = Clock::now());
  // The partitions of the signature, and the reasons for them.
  Result<Distribution> explain(const Signature& signature);
  // Signatures that are prepared from now on are placed by these costs.
  Status learn(graph::CostModel costs);
  std::optional<std::string> stalled();
  SessionCounters counters();
  void warn(const std::string& text) const;

  const graph::Graph& graph() const { return graph_; }
  const DeviceSet& device_set() const { return *devices_; }
  Backend& backend() const { return *backend_; }
  const SessionOptions& options() const { return options_; }

 private:
  // A run that cannot start yet, with the arguments of its start.
  struct Waiting;
  // A queued run. The thread that takes it starts it; an earlier cancellation
  // answers it, and removes it from the queue.
  class Queued;
  // A run that waits for the border.
  class AtBorder;
  using Queue = std::list<std::shared_ptr<Queued>>;

  // Is held while code of the user is called: pure kernels, which are folded,
  // factories, shape functions, on_warning. If that code requests
  // the lock again, on the same thread, the error is FailedPrecondition.
  class CompileLock;
  // FailedPrecondition, too, if the session is closed. Waits for a thread that
  // compiles until the budget, if any, has ended.
  Result<CompileLock> lock_compiling(graph::Budget* budget = nullptr);
  // The error of all calls after the session is closed.
  static Status closed_session();
  // The answer of a compilation, whose budget takes the end of the session for
  // a cancellation of the run: closed_session() then.
  template <class T>
  Result<T> or_closed(Result<T> compiled);
  // What a compilation may take for a run that began at `start`. The options
  // must outlive it.
  graph::Budget::Options budget_of(const RunOptions& options,
                                   Clock::time_point start);
  // REQUIRES of the functions below: a CompileLock and, at least shared,
  // graph_mutex_ are held.
  Result<Request> find_request(const Signature& signature);
  // Unimplemented if the backend cuts the graphs.
  Status check_cuts(std::string_view what) const;
  // Compiles the usual form, with what its other forms need.
  Result<std::shared_ptr<const Prepared>> compile_usual(
      const Signature& signature, graph::Budget& budget);
  Result<Distribution> distribute(const Request& request, Purpose purpose,
                                  graph::Budget& budget);
  // If the form is frozen, `frozen` gets the versions of its variables. Null if
  // it would equal the usual form.
  Result<std::shared_ptr<Prepared>> compile(const Signature& signature,
                                            const Special& special,
                                            FrozenVariables* frozen,
                                            graph::Budget& budget);
  std::shared_ptr<Prepared> finish(const Request& request, Backend::Made made);
  // The feeds whose shapes are not fully known, if a form could use them.
  std::vector<size_t> find_open_feeds(const Prepared& prepared) const;
  // Checks the nodes that were added since the last check.
  Status check_graph(graph::Budget& budget);
  // The groups of the current graph.
  const StateGroups& groups();
  void warn_once(std::span<const std::string> warnings);

  Status check_call(const Prepared& prepared, std::span<const Tensor> feeds,
                    const RunOptions& options) const;
  // A form for such a run, if there is one; otherwise null.
  std::shared_ptr<const Prepared> pick_form(const Prepared& prepared,
                                            std::span<const Tensor> feeds,
                                            const RunOptions& options,
                                            Clock::time_point start);
  // Without `on_answer`, a thread waits for the answer.
  std::shared_ptr<Step> make_step(
      const Prepared& prepared, const RunOptions& options,
      Clock::time_point start,
      std::function<void(Step::Answer, const RunStats&)> on_answer);
  // Starts the step, or makes it wait for the border or in the queue. After an
  // error it is not open, and gets no answer.
  Status submit(const std::shared_ptr<Step>& step,
                const std::shared_ptr<const Prepared>& prepared,
                std::span<const Tensor> feeds, bool sync, bool count);
  // As submit(), for a step that has passed the border, if it must.
  Status submit_passed(const std::shared_ptr<Step>& step,
                       const std::shared_ptr<const Prepared>& prepared,
                       std::span<const Tensor> feeds, bool sync, bool lend,
                       bool count);
  Status wait_at_border(std::shared_ptr<AtBorder> waiting);
  // The step does not wait at the border any more. REQUIRES: it is open.
  void leave_border(Step& step);
  // Releases the step's share of the border's lock.
  void return_border(Step& step);
  // Queues the step. REQUIRES: steps_mutex_ is held.
  Status enqueue(std::shared_ptr<Queued> queued);
  // REQUIRES: steps_mutex_ is held, and the queue is not the only owner of
  // `queued`.
  void leave_queue(Queued& queued);
  // While the step waits for an external event, it does not count as active:
  // the next queued step starts.
  void deactivate(Step& step);
  // The step counts as active again, even beyond the limit.
  void activate(Step& step);
  // Makes the next queued run active and returns it, or null. The caller must
  // start it. REQUIRES: steps_mutex_ is held.
  std::shared_ptr<Queued> admit_next();
  // Starts that run, if any, and the following ones that may start.
  void start_queued(std::shared_ptr<Queued> next);
  void drop_queued(Queued& queued);
  // The step is not open any more. Returns admit_next().
  std::shared_ptr<Queued> leave(Step& step);
  void end_step(Step& step, Step::Answer answer, const RunStats& stats);
  void count_answer();

  // An unlimited time that does not overflow a time point.
  static constexpr std::chrono::nanoseconds kLongestTimeout =
      std::chrono::hours(24 * 365 * 100);

  const SessionOptions options_;
  const std::shared_ptr<DeviceSet> devices_;
  // Runs the functions of datasets; null if the options have a backend.
  const std::shared_ptr<SessionFunctions> functions_;
  const std::shared_ptr<Backend> backend_;
  const std::shared_ptr<ServedSession> served_;  // null: it cuts graphs itself
  const bool answers_at_once_;                   // as the backend does
  SignatureCache cache_;
  Turns compiling_;                                // of CompileLocks
  std::atomic<std::thread::id> compiling_thread_;  // that has it
  std::shared_mutex graph_mutex_;
  graph::Graph graph_;
  graph::GrowingCheck check_;          // of graph_
  size_t num_frame_warnings_ = 0;      // of graph_, reported
  std::optional<StateGroups> groups_;  // of an earlier graph_
  std::set<std::string> warned_;
  graph::CostModel costs_;
  std::mutex steps_mutex_;  // guards the below
  std::condition_variable steps_changed_;
  bool closed_ = false;
  bool is_left_ = false;
  StepList open_;  // started and not over, or queued
  int64_t num_active_ = 0;
  Queue queued_;
  int64_t num_queued_async_ = 0;  // those of run_async()
  size_t num_unanswered_ = 0;     // runs whose `done` has not returned
};

// Held by a Session and its Callables: the last of them closes the state.
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
