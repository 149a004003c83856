// MasterService: the sessions of many clients over one set of devices.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/session/session.h"
#include "actors/watch/trace.h"
#include "net/service/figures.h"
#include "net/service/run_turns.h"
#include "net/wire/service_request.h"

namespace tagflow::net {

struct ServiceLimits {
  size_t clients = 64;
  // Of each client.
  size_t sessions = 16;
  size_t signatures = 4096;
  size_t runs = 1024;                  // that are not answered
  uint64_t bytes = uint64_t{1} << 30;  // of feeds of these runs
  // Of all clients, beside a few of each: Note [Turns of clients].
  size_t active_runs = 256;
  size_t traces = 8;  // of runs that are recorded
};

// Note [What a client leaves]
// A client is whoever holds a MasterService::Client: a door makes one for a
// connection, and calls leave() when that ends. Its sessions, their graphs and
// signatures end with it, and its runs are cancelled. All sessions share one
// state: so what is in containers stays, and other clients find it by its
// names.

// Note [Watching runs]
// A client may prepare a *watch*. A run of it waits for the next run that any
// client begins and does not record itself: that one is recorded by the trace
// of the first watcher, which is over when it is. So a client that keeps a few
// watchers waiting sees as many runs as it can take, and slows no others down.
// The watcher may be cancelled before; the run goes on.

// Has no sockets: doors bring what clients ask for. Thread-safe.
class MasterService {
 public:
  struct Options {
    // Of all sessions: the backend, the policy, where they print.
    actors::SessionOptions session;
    ServiceLimits limits;
  };
  class Client;

  // InvalidArgument if a limit is 0; errors of Session::create().
  static Result<std::unique_ptr<MasterService>> create(Options options);
  // REQUIRES: all clients are destroyed.
  ~MasterService();
  MasterService(const MasterService&) = delete;
  MasterService& operator=(const MasterService&) = delete;

  // A new client. ResourceExhausted if there are too many.
  Result<std::unique_ptr<Client>> admit();
  std::span<const graph::DeviceInfo> devices() const;
  const ServiceLimits& limits() const { return options_.limits; }
  // A trace of so many words at most, for a run. ResourceExhausted if too many
  // runs are recorded; Unimplemented if the devices are this process's.
  Result<std::shared_ptr<actors::Trace>> make_trace(uint64_t words);
  // For whoever watches it. Waits for no run.
  ServiceFigures figures();
  // Whether a run waits for its turn. Then look() is to be called now and then.
  bool has_queue();
  // Finds the runs that wait for events, and lets others have their turns.
  void look();

 private:
  struct Pending;

  explicit MasterService(Options options)
      : options_(std::move(options)), turns_(options_.limits.active_runs) {}
  // Begins the runs whose turn it is. One thread does at a time, so that runs
  // which fail at once do not nest.
  void begin(RunTurns::Starts starts);
  void start(uint64_t id);
  void on_over(uint64_t id, Result<std::vector<Tensor>> answer,
               const actors::RunStats& stats);
  // A run begins: whoever watches gets its trace. REQUIRES: the lock is held
  void let_watch(Pending& pending);
  // Takes it out; null if it is over. REQUIRES: the lock is held
  std::shared_ptr<Pending> take(uint64_t id, RunTurns::Starts& starts) noexcept;
  // Calls its `done`, which is the last that its client hears of it, and begins
  // the others. Then the client may go, and the service after it.
  void answer(Pending& pending, Result<std::vector<Tensor>> answer,
              const actors::RunStats& stats, RunTurns::Starts starts);

  const Options options_;
  std::unique_ptr<actors::Session> root_;  // has the state, and no graph
  std::mutex mutex_;                       // guards the below; held briefly
  std::condition_variable changed_;
  RunTurns turns_;
  std::map<uint64_t, Client*> clients_;
  std::map<uint64_t, std::shared_ptr<Pending>> pending_;  // runs, by id
  uint64_t last_id_ = 0;                                  // of clients and runs
  RunTurns::Starts to_begin_;
  std::vector<std::weak_ptr<actors::Trace>> traces_;
  std::deque<uint64_t> watchers_;  // the ids of those that wait
  // A run that was cancelled may be recorded until its workers have ended it.
  struct KeptTrace {
    std::chrono::steady_clock::time_point until;
    std::shared_ptr<actors::Trace> trace;
  };
  std::deque<KeptTrace> kept_traces_;
  bool is_beginning_ = false;
};

// What one client has. Only what it asks for takes memory, and is refused with
// ResourceExhausted if there is none: what is under way then goes on, is
// answered, and can be ended. Thread-safe.
class MasterService::Client {
 public:
  struct Answer {
    // Of a signature; true if that is not known.
    bool updates_state = true;
    std::vector<std::string> warnings;  // about the graph, for users
  };
  using Done = actors::Done;

  // Calls leave().
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Does what the client asks, which may take long. REQUIRES: one at a time.
  // Errors of the session, and ResourceExhausted beyond a limit; AlreadyExists
  // for a number that it has, NotFound for a session that it does not have,
  // Cancelled if the number is released meanwhile.
  Result<Answer> perform(const ServiceRequest& request);
  // Starts a run of what was prepared as `executable`; `number` is new. Its
  // feeds have the order of the signature. `done` is called once, on any
  // thread, and must not block; after an error it is not called. The trace is
  // of make_trace().
  Status run(uint64_t executable, uint64_t number, std::vector<Tensor> feeds,
             Done done, std::shared_ptr<actors::Trace> trace = nullptr);
  // Ends a run, if it is not over.
  void cancel(uint64_t number, const Status& cause);
  // A session or executable is not needed any more, or what was asked for in
  // vain: called once for each, maybe before perform(). The caller destroys the
  // result, which may wait for runs. DataLoss if there are too many numbers
  // that were never asked for.
  Result<std::shared_ptr<void>> release(uint64_t number);
  // As Session::reset(), for all clients.
  Status reset(const std::vector<std::string>& containers);
  // Refuses further calls, and cancels all runs and compilations.
  void abandon();
  // Also waits until each `done` has returned, and closes the sessions.
  // REQUIRES: no other call is under way
  void leave();

 private:
  friend class MasterService;
  struct Held;
  // What runs of a signature need.
  struct Prepared {
    actors::Callable callable;
    size_t num_feeds = 0;
  };
  using Request = ServiceRequest;

  // What became of a request: one of the two.
  struct Made {
    std::shared_ptr<Held> session;
    std::shared_ptr<Prepared> executable;  // null: it watches
    bool updates_state = true;
    std::vector<std::string> warnings;
  };

  Client(MasterService& service, uint64_t id) : service_(service), id_(id) {}
  Result<Made> open(const Request::Open& open);
  Result<Answer> extend(uint64_t number, const Request::Extend& extend);
  Result<Made> prepare(uint64_t session, const Request::Prepare& prepare,
                       const actors::CancelToken& token);
  Result<std::shared_ptr<Held>> find(uint64_t session);
  // Whether a number may be used. One beyond a limit has been asked for in
  // vain. REQUIRES: the service's lock is held
  Status claim(uint64_t number);
  Result<Made> make(const ServiceRequest& request,
                    const actors::CancelToken& token);
  // Keeps what was made. REQUIRES: the service's lock is held
  Status keep(uint64_t number, Result<Made>& made);

  MasterService& service_;
  const uint64_t id_;
  // The service's mutex guards the below.
  bool has_left_ = false;
  std::map<uint64_t, std::shared_ptr<Held>> sessions_;
  // Null: it watches.
  std::map<uint64_t, std::shared_ptr<Prepared>> executables_;
  std::map<uint64_t, actors::CancelToken> making_;
  // Released before they were asked for, and asked for in vain before they are
  // released.
  std::set<uint64_t> released_, failed_;
  std::map<uint64_t, uint64_t> runs_;  // by number: the service's id
  uint64_t bytes_ = 0;                 // of their feeds
  size_t unanswered_ = 0;
};

}  // namespace tagflow::net
