// Session: the main interface. It holds a graph and runs parts of it.
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
struct DeviceInfo;
}  // namespace tagflow::graph

namespace tagflow::actors {

struct Distribution;  // actors/plan/distribute.h
class SessionHandle;  // internal
class SessionState;   // internal

// The current numbers of a session.
struct SessionCounters {
  int64_t active = 0;      // runs that compute
  int64_t waiting = 0;     // runs that wait for an external event
  int64_t queued = 0;      // runs that wait for their turn
  int64_t signatures = 0;  // compiled and cached
  // The memory in use on the devices, which other sessions may share. A CPU
  // counts if it has a memory limit.
  int64_t device_bytes = 0;
};

using Feed = std::pair<std::string, Tensor>;  // "name:port" or "name", value

// Called once with the answer of an asynchronous run: see Session::run_async.
using Done = std::function<void(Result<std::vector<Tensor>>, RunStats)>;

// A prepared signature: what to feed, fetch and run. Calls are cheap, and may
// come from many threads. Keeps the session open, even after the Session object
// is destroyed.
class Callable {
 public:
  Callable();  // empty; may be assigned to
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
  // Whether its session is closed: then all calls are rejected, and running
  // ones were cancelled. True if the callable is empty. Thread-safe.
  bool is_closed() const;

 private:
  friend class Session;
  class Impl;
  explicit Callable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// One graph and the state of its ops. Thread-safe: runs are concurrent. The
// functions that the session calls while it extends its graph or prepares a
// signature (pure kernels, which it folds, factories, shape functions,
// on_warning) must not extend or prepare: FailedPrecondition.
class Session {
 public:
  // InvalidArgument unless workers are 0 to 1024, window, timeout and
  // max_queued_runs are not negative, the other limits are positive, the
  // policy is valid (OpPolicy::validate()), the devices exist, and a shared
  // state has the same devices; ResourceExhausted
  // if threads or memory cannot be allocated.
  static Result<std::unique_ptr<Session>> create(SessionOptions options);
  // Closes the session like close() without a deadline, once its callables are
  // destroyed, too; it does not wait if a deadline of close() has passed. Other
  // threads may be inside of run(). On a thread of an engine (in `done`, an
  // observer, a kernel) it does not wait.
  ~Session();

  // Cancels all runs, rejects new ones (FailedPrecondition), and waits until
  // none runs any more, including kernels that cannot be interrupted. Then
  // every `done` has returned; the caller must hold no lock that they take.
  // DeadlineExceeded if that takes longer than the deadline: then the remaining
  // runs are freed when they end, and their observers and traces must live
  // until then. FailedPrecondition on a thread of an engine, which must not
  // wait; the runs are cancelled nevertheless.
  Status close(std::optional<std::chrono::nanoseconds> deadline = {});

  // Adds nodes; names must be new. After an error, no node was added.
  // PermissionDenied if the session's policy refuses a node, or one of a
  // function.
  Status extend(std::span<const graph::NodeDef> nodes);
  // As above, with the functions of a graph that has no nodes.
  Status extend(std::span<const graph::NodeDef> nodes,
                const graph::Graph& functions);
  // Adds every node of the graph and its function library.
  Status extend(const graph::Graph& graph);

  // Runs the nodes that the fetches and targets need. `feeds` replace tensors
  // of the graph. Returns the fetches in order. Errors:
  //   InvalidArgument, NotFound  a name, dtype or shape is wrong
  //   Cancelled
  //   DeadlineExceeded           names the stage of the compilation that it
  //                              ended, or the loops that ran, and how far they
  //                              came; at most 50 ms late, unless a kernel
  //                              that says it is cheap blocks this thread
  //   Deadlock no progress is possible; names waiting nodes
  //   what a kernel returned, with node, tag and device in the message
  // InvalidArgument if a fetched tensor is dead; the message names the Switch.
  // REQUIRES: not called from a `done` or a thread of an engine (rejected with
  // FailedPrecondition).
  Result<std::vector<Tensor>> run(const std::vector<Feed>& feeds,
                                  const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& targets = {},
                                  const RunOptions& options = {},
                                  RunStats* stats = nullptr);

  // Prepares a signature. Errors about names as for run(). Of the options, the
  // time-out and the cancellation matter: DeadlineExceeded and Cancelled.
  Result<Callable> make_callable(const std::vector<std::string>& feeds,
                                 const std::vector<std::string>& fetches,
                                 const std::vector<std::string>& targets = {},
                                 const RunOptions& options = {});

  // The partitions of a signature, and the reasons for the placement of its
  // nodes. Errors about names as for run().
  Result<Distribution> explain(const std::vector<std::string>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets = {});
  // Signatures that are prepared from now on are placed by these costs: see
  // actors/watch/cost_recorder.h.
  Status learn(graph::CostModel costs);

  // Starts a run and returns at once. `done` is called exactly once, never on a
  // device's thread:
  //   before run_async returns, on this thread, if the run is rejected: a name
  //   or feed is wrong, the session is closed, too many runs are queued, the
  //   process was forked, or memory is short
  //   on the thread that cancels the run or closes the session, if the run has
  //     not started by then
  //   otherwise on a thread of the engine
  // `done` must not block, and cannot wait for a run: the thread that calls it
  // counts as a thread of an engine. Its exceptions become warnings. It may
  // destroy the session. The time-out applies here, too.
  using Done = actors::Done;
  void run_async(const std::vector<Feed>& feeds,
                 const std::vector<std::string>& fetches,
                 const std::vector<std::string>& targets,
                 const RunOptions& options, Done done);

  // Empties containers of the state: variables lose their values, and queues,
  // tables and readers are removed, for all sessions that share the state. Ops
  // that wait for them end as Cancelled. "" is the default container.
  // ResourceExhausted if there is not enough memory; then nothing has changed.
  Status reset(const std::vector<std::string>& containers);
  // For SessionOptions::state of another session. Outlives this one.
  std::shared_ptr<SharedState> shared_state() const;

  // Why the runs of this session are stalled until another one is started: each
  // waits for shared state, such as a queue, none is active, and none waits for
  // a timer, a thread or a peer. None if some run can go on, or no run is open.
  // The result holds until a run is started. It considers the runs of this
  // session only: if two sessions share such state, a run of the other session
  // might still end the wait.
  std::optional<std::string> stalled() const;
  SessionCounters counters() const;

  // REQUIRES: no extend() meanwhile.
  const graph::Graph& graph() const;
  std::span<const std::unique_ptr<devices::Device>> devices() const;
  // What placement knows of the devices, by number.
  std::span<const graph::DeviceInfo> device_infos() const;
  const SessionOptions& options() const;

 private:
  explicit Session(std::shared_ptr<SessionHandle> handle);
  std::shared_ptr<SessionState> state() const;
  std::shared_ptr<SessionHandle> handle_;
};

}  // namespace tagflow::actors
