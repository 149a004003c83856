// SessionState: what a session is made of; shared by it and its callables.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/distribute.h"
#include "actors/engine.h"
#include "actors/executable.h"
#include "actors/session.h"
#include "devices/device.h"
#include "graph/frames.h"
#include "graph/graph.h"

namespace tagflow::actors {

struct CancelToken::State {
  std::mutex mutex;
  bool cancelled = false;
  std::vector<std::weak_ptr<Step>> steps;
};

// A signature, as it is looked up.
struct Signature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
};

// A compiled signature, with what its feeds must look like.
struct Prepared {
  std::vector<graph::Endpoint> feeds;
  std::shared_ptr<Executable> executable;
};

// Thread-safe.
class SessionState {
 public:
  using OwnedDevices = std::vector<std::unique_ptr<devices::Device>>;
  SessionState(SessionOptions options, OwnedDevices devices);
  ~SessionState();

  Status extend(std::span<const graph::NodeDef> nodes);
  Status extend(const graph::Graph& graph);
  // From the cache, or compiled.
  Result<std::shared_ptr<const Prepared>> prepare(const Signature& signature);

  Result<std::vector<Tensor>> run(const Prepared& prepared,
                                  std::span<const Tensor> feeds,
                                  const RunOptions& options, RunStats* stats);
  void run_async(const Prepared& prepared, std::span<const Tensor> feeds,
                 const RunOptions& options, Session::Done done);

  // What the signature is cut into, and why.
  Result<Distribution> explain(const Signature& signature);
  // What is prepared from now on is placed by these.
  void learn(graph::CostModel costs);

  const graph::Graph& graph() const { return graph_; }
  std::span<const std::unique_ptr<devices::Device>> devices() const {
    return devices_;
  }
  const SessionOptions& options() const { return options_; }

 private:
  // REQUIRES of these: graph_mutex_ is held.
  Result<Request> find_request(const Signature& signature);
  Result<Distribution> distribute(const Request& request, bool explain);
  Result<std::shared_ptr<const Prepared>> compile(const Signature& signature);
  // Checks the whole graph, once after it was extended.
  Status check_graph();
  void warn(const std::vector<std::string>& warnings);
  Status check_call(const Prepared& prepared, std::span<const Tensor> feeds,
                    const RunOptions& options);
  std::shared_ptr<Step> make_step(const Prepared& prepared,
                                  const RunOptions& options);

  const SessionOptions options_;
  const OwnedDevices devices_;
  std::shared_mutex graph_mutex_;
  graph::Graph graph_;
  std::map<std::string, std::shared_ptr<const Prepared>, std::less<>> cache_;
  std::optional<graph::FrameMap> frames_;  // of graph_, where it was checked
  std::set<std::string> warned_;
  graph::CostModel costs_;
  std::atomic<uint64_t> next_step_{1};
  // Steps that are not over yet; the destructor waits for them.
  std::mutex steps_mutex_;
  std::condition_variable steps_changed_;
  std::unordered_map<uint64_t, std::weak_ptr<Step>> steps_;  // by id
  std::unique_ptr<Engine> engine_;  // last: stops before the rest goes
};

}  // namespace tagflow::actors
