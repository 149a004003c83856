// ClientSession: one session of a session service.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/session/session.h"
#include "net/tensorflow/graph_intake.h"
#include "net/tensorflow/partial_run.h"
#include "net/tensorflow/service_parts.h"

namespace tensorflow {
class CallableOptions;
class GraphDef;
class MakeCallableRequest;
class PartialRunSetupRequest;
class RunCallableRequest;
class RunCallableResponse;
class RunOptions;
class RunStepRequest;
class RunStepResponse;
}  // namespace tensorflow

namespace tagflow::net {

// Its runs own it. Errors of runs are those of Session::run() in the form of
// Note [Errors for clients]. A `done` is called once, on any thread, and must
// not block; requests and responses live until then. Thread-safe.
class ClientSession : public std::enable_shared_from_this<ClientSession> {
 public:
  using Done = std::function<void(Status)>;
  using Clock = std::chrono::steady_clock;

  // Errors of Session::create().
  static Result<std::shared_ptr<ClientSession>> open(
      std::string handle, actors::SessionOptions options,
      std::shared_ptr<ServiceParts> parts);

  const std::string& handle() const { return handle_; }
  // When it was last asked for something; never, if something runs.
  std::optional<Clock::time_point> idle_since() const;

  // Adds to its graph, and returns the new version. Aborted unless it has the
  // expected one; none expects nothing, and leaves the version.
  Result<int64_t> extend(const tensorflow::GraphDef& graph,
                         std::optional<int64_t> version);
  void run(const tensorflow::RunStepRequest& request,
           tensorflow::RunStepResponse& response,
           const actors::CancelToken& token, Done done);
  // Returns what partial runs name.
  Result<std::string> set_up(const tensorflow::PartialRunSetupRequest& request);
  Result<int64_t> make_callable(const tensorflow::CallableOptions& options,
                                const actors::CancelToken& token);
  void run_callable(const tensorflow::RunCallableRequest& request,
                    tensorflow::RunCallableResponse& response,
                    const actors::CancelToken& token, Done done);
  // Nothing happens if there is none.
  void release_callable(int64_t callable);
  // Refuses further calls, cancels what runs, and waits for it, for a limited
  // time: a kernel that cannot be interrupted ends on its own.
  void close();

 private:
  struct Signature;
  struct Prepared;
  class Call;
  using ReadyToRun = std::shared_ptr<const Prepared>;
  // Of a run that was ended early, and may go on; with what runs.
  using EarlyTrace = std::pair<std::shared_ptr<actors::Trace>, ReadyToRun>;

  ClientSession(std::string handle, std::unique_ptr<actors::Session> session,
                std::shared_ptr<ServiceParts> parts);
  // Begins a call whose feeds may take so many bytes. Cancelled if the session
  // is closed.
  Result<std::shared_ptr<Call>> begin(uint64_t bytes,
                                      const actors::CancelToken& token,
                                      const Done& done);
  ReadyToRun find(const std::string& key);
  Result<ReadyToRun> prepare(const Signature& signature,
                             const actors::RunOptions& options);
  // In a copy of the graph in which tensors take the place of others.
  Result<ReadyToRun> prepare_connected(
      const tensorflow::CallableOptions& options, const Signature& signature);
  // Of a session over the same state.
  actors::SessionOptions twin_options() const;
  // The name of the device of its answers.
  std::string home() const;
  // An error, which says that the session is closed if it may come of that: the
  // session refuses what it has not started by then.
  Status or_closed(Status status) const;
  // Why a name is not there, if it was set aside.
  Status explain(Status status, const Signature& signature);
  // Starts the run of a call at once if it is prepared, and else has a clerk
  // prepare it. Errors are those of a call that was not started.
  Status launch(const std::shared_ptr<Call>& call, Signature signature);
  // Starts it, by a clerk if a form of its signature may be compiled.
  Status start(const std::shared_ptr<Call>& call, const ReadyToRun& prepared);
  Status prepare_and_start(Call& call, const Signature& signature,
                           const std::string& key);
  Status launch_step(const std::shared_ptr<Call>& call,
                     const tensorflow::RunStepRequest& request,
                     PartialRun::Feeds feeds);
  // Has a clerk end a partial run, if it is over.
  void retire(const std::string& partial_run);
  // A copy of the graph; its bytes count until the share ends.
  Result<graph::Graph> copy_graph(ByteCount::Share& share);
  // Keeps the trace of a run that was ended early until the run is over.
  void keep_trace(std::shared_ptr<actors::Trace> trace, ReadyToRun prepared);
  void drop_old_traces();

  const std::string handle_;
  const std::unique_ptr<actors::Session> session_;
  const std::shared_ptr<ServiceParts> parts_;
  std::atomic<size_t> open_calls_{0};
  std::atomic<Clock::rep> last_use_;

  const std::string container_;  // Note [Private containers]
  std::mutex extending_;         // guards the next ones; before mutex_
  GraphIntake intake_;
  int64_t version_ = 0;
  std::vector<ByteCount::Share> graph_shares_;
  uint64_t graph_bytes_ = 0;  // of all of them

  mutable std::mutex mutex_;  // guards the below; held briefly
  bool is_closed_ = false;
  std::unordered_map<std::string, ReadyToRun> prepared_;
  int64_t last_callable_ = 0;
  std::map<int64_t, ReadyToRun> callables_;
  uint64_t last_partial_run_ = 0;
  std::map<std::string, std::shared_ptr<PartialRun>> partial_runs_;
  std::vector<EarlyTrace> early_traces_;
};

}  // namespace tagflow::net
