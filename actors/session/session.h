// Session: the front door. Holds a graph, runs parts of it.
//
//   auto session = actors::Session::create({}).value();
//   if (!session->extend(graph).ok()) ...
//   auto out = session->run({{"x:0", Tensor::scalar(3)}}, {"y:0"});
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/options.h"
#include "actors/runtime/engine.h"
#include "graph/graph.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {
class Device;
}

namespace tagflow::graph {
class CostModel;
}

namespace tagflow::actors {

struct Distribution;  // actors/plan/distribute.h
class SessionHandle;  // internal
class SessionState;   // internal

// What a session has in hand at the moment.
struct SessionCounters {
  int64_t active = 0;      // runs that compute
  int64_t waiting = 0;     // runs that wait for something outside of them
  int64_t queued = 0;      // runs that wait for their turn
  int64_t signatures = 0;  // kept compiled
  // What the devices, which other sessions may share, have given out. CPUs
  // count where they have a limit.
  int64_t device_bytes = 0;
};

using Feed = std::pair<std::string, Tensor>;  // "name:port" or "name", value

// Called once with the answer of an asynchronous run: see Session::run_async.
using Done = std::function<void(Result<std::vector<Tensor>>, RunStats)>;

// A prepared signature: what to feed, fetch and run. Cheap to call, many
// times and from many threads. Keeps the session open, beyond the Session if
// need be.
class Callable {
 public:
  Callable();  // empty; to be assigned
  Callable(Callable&&) noexcept;
  Callable& operator=(Callable&&) noexcept;
  ~Callable();
  // `feeds` in the order of the signature. Errors as Session::run.
  // Thread-safe.
  Result<std::vector<Tensor>> operator()(std::span<const Tensor> feeds = {},
                                         const RunOptions& options = {},
                                         RunStats* stats = nullptr) const;
  // As Session::run_async. Thread-safe.
  void run_async(std::span<const Tensor> feeds, const RunOptions& options,
                 Done done) const;
  // Whether its session is closed: that refuses all calls from then on, and
  // has cancelled those that ran. Also of an empty one. Thread-safe.
  bool is_closed() const;

 private:
  friend class Session;
  class Impl;
  explicit Callable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One graph and the state its ops keep. Thread-safe: runs are concurrent. Only
// what the session calls while it extends its graph or prepares a signature
// (pure kernels, which it folds, factories, shape functions, on_warning) must
// not ask it for either: FailedPrecondition.
class Session {
 public:
  // InvalidArgument unless workers are 0 to 1024, window, timeout and
  // max_queued_runs not negative, the other limits positive, the devices ones
  // that there are, and a shared state one of the same devices;
  // ResourceExhausted where there are no threads or no memory.
  static Result<std::unique_ptr<Session>> create(SessionOptions options);
  // With the last of its callables: closes the session as close() does, without
  // a deadline, unless one of close() has passed. Other threads may be inside
  // of run(). On a thread of an engine (in `done`, an observer, a kernel) it
  // waits for nothing.
  ~Session();

  // Cancels what runs, refuses what comes (FailedPrecondition), and waits until
  // nothing runs any more: for kernels that cannot be interrupted, too. Then
  // every `done` has returned; the caller must hold no lock that they take.
  // DeadlineExceeded where that takes longer; the engine frees what is left
  // when it ends, and what its runs use (observers, traces) must live on until
  // then. FailedPrecondition on a thread of an engine, which must not
  // wait; what runs is cancelled nevertheless.
  Status close(std::optional<std::chrono::nanoseconds> deadline = {});

  // Adds nodes; names must be new. On an error nothing was added.
  Status extend(std::span<const graph::NodeDef> nodes);
  // Adds every node of the graph and its function library.
  Status extend(const graph::Graph& graph);

  // Runs what the fetches and targets need. `feeds` replace tensors of the
  // graph. Returns the fetches in order. Errors:
  //   InvalidArgument, NotFound  a name, dtype or shape is wrong
  //   Cancelled
  //   DeadlineExceeded           names the loops that ran, and how far they
  //                              came; at most 50 ms late, unless a kernel
  //                              that says it is cheap blocks this thread
  //   Deadlock                   no progress is possible; says who waits
  //   what a kernel returned, with node, tag and device in the message
  // A fetched tensor that is dead is InvalidArgument, and names the Switch.
  // REQUIRES: not called from a `done` or a thread of an engine (refused with
  // FailedPrecondition).
  Result<std::vector<Tensor>> run(const std::vector<Feed>& feeds,
                                  const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& targets = {},
                                  const RunOptions& options = {},
                                  RunStats* stats = nullptr);

  // Prepares a signature. Errors as run's of names.
  Result<Callable> make_callable(const std::vector<std::string>& feeds,
                                 const std::vector<std::string>& fetches,
                                 const std::vector<std::string>& targets = {});

  // What a signature is cut into, and why its nodes are where they are. Errors
  // as run's of names.
  Result<Distribution> explain(const std::vector<std::string>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets = {});
  // Signatures that are prepared from now on are placed by these costs: see
  // actors/watch/cost_recorder.h.
  Status learn(graph::CostModel costs);

  // Starts a run and returns at once. `done` is called exactly once, never on a
  // device's thread:
  //   before run_async returns, on this thread, if the run is refused: a name
  //     or feed is wrong, the session is closed, too many runs are queued, the
  //     process was forked, or memory is short
  //   on the thread that cancels the run or closes the session, if the run has
  //     not started by then
  //   otherwise on a thread of the engine
  // `done` must not block, and cannot wait for a run: the thread that calls it
  // counts as one of an engine's. What it throws is a warning. It may destroy
  // the session. The time-out applies here too.
  using Done = actors::Done;
  void run_async(const std::vector<Feed>& feeds,
                 const std::vector<std::string>& fetches,
                 const std::vector<std::string>& targets,
                 const RunOptions& options, Done done);

  // Empties containers of the state: variables lose their values, queues,
  // tables and readers are gone, for all sessions that share it. What waits in
  // them ends as Cancelled. "" is the default container. ResourceExhausted
  // where there is no memory for it; then nothing has changed.
  Status reset(const std::vector<std::string>& containers);
  // For SessionOptions::state of another session. Outlives this one.
  std::shared_ptr<SharedState> shared_state() const;

  // Why the runs of this session cannot go on unless another one is started:
  // each waits for shared state, as of a queue, none is active, and none waits
  // for a time, a thread or a peer. None where one can, or none is open. What
  // it says holds until a run is started. It knows the runs of this session
  // only: where two sessions share such state, a run of the other session might
  // still end the wait.
  std::optional<std::string> stalled() const;
  SessionCounters counters() const;

  // REQUIRES: no extend() meanwhile.
  const graph::Graph& graph() const;
  std::span<const std::unique_ptr<devices::Device>> devices() const;
  const SessionOptions& options() const;

 private:
  explicit Session(std::shared_ptr<SessionHandle> handle);
  std::shared_ptr<SessionState> state() const;
  std::shared_ptr<SessionHandle> handle_;
};

}  // namespace tagflow::actors
