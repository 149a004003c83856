// PartialRun: a run whose feeds come, and whose fetches go, in several steps.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/session.h"
#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::net {

// Note [Partial runs]
// A partial run has a session of its own, over the state of the client's. Its
// graph is a copy in which every feed is taken from a queue, and every fetch is
// put into one:
//
//   value -> put -> [queue of x] -> get -> (readers of x)
//   y -> out -> [queue of y] -> take
//
// One run of all `out`, and of the targets, is started when it is set up, and
// waits for its queues without a thread. A step runs the `put` of its feeds and
// the `take` of its fetches. When the run is over, the queues of fetches are
// closed, so that nobody waits for one that is dead; when it has failed, its
// error is the answer of all steps.

// Owned by its runs, too. Thread-safe.
class PartialRun : public std::enable_shared_from_this<PartialRun> {
 public:
  // Names are "name:port" or "name".
  struct Setup {
    std::string name;  // of its container, which nobody else has
    std::vector<std::string> feeds, fetches, targets;
  };
  using Feeds = std::vector<std::pair<std::string, Tensor>>;
  using Answer = std::function<void(Result<std::vector<Tensor>>)>;

  // Starts the run of a copy of this graph. InvalidArgument if there is nothing
  // to run, or a name is wrong; errors of a session.
  static Result<std::shared_ptr<PartialRun>> start(
      const graph::Graph& graph, actors::SessionOptions options,
      const Setup& setup);

  // One step; it compiles. InvalidArgument for a feed or fetch that was not set
  // up, that was there in an earlier step, or that needs a feed which has not
  // come. `answer` gets the fetches in their order; it is called once, on any
  // thread.
  void step(Feeds feeds, const std::vector<std::string>& fetches,
            const actors::CancelToken& token, Answer answer);
  // Whether all has been fed and fetched, or the run has failed, and no step is
  // open.
  bool is_over() const;
  // Cancels what runs, waits for it, and removes the queues.
  void close();

 private:
  // A tensor that is fed or fetched.
  struct Port {
    graph::Node* get = nullptr;  // of a feed
    std::string value, put;      // nodes: of a feed
    std::string take, close;     // of a fetch
    graph::Endpoint source;      // of a fetch
    bool is_used = false;
  };
  using Ports = std::map<std::string, Port>;  // by "name:port"

  PartialRun() = default;
  Status build(const Setup& setup);
  Status add_feed(const std::string& name, const Setup& setup);
  Status add_fetch(const std::string& name, const Setup& setup);
  // The queue's output.
  Result<graph::Endpoint> add_queue(const std::string& prefix, DataType type,
                                    const Setup& setup);
  // Checks a step, and marks what it uses. REQUIRES: the lock is held
  Status claim(const Feeds& feeds, const std::vector<std::string>& fetches);
  // The first feed that has not come and that the tensor needs; or null.
  const std::string* missing_for(const graph::Endpoint& source) const;
  void on_over(Status status);
  Result<std::string> key(const std::string& name) const;

  graph::Graph graph_;
  Ports feeds_, fetches_;  // the lock guards `is_used`
  std::vector<std::string> outs_;
  std::string container_;
  std::unique_ptr<actors::Session> session_;
  actors::Callable close_queues_;

  mutable std::mutex mutex_;                      // guards the below
  std::optional<Status> over_;                    // of the run
  std::map<uint64_t, actors::CancelToken> open_;  // steps
  uint64_t last_step_ = 0;
};

}  // namespace tagflow::net
