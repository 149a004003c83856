// PartialRun: a run whose feeds come, and whose fetches go, in several steps.
#pragma once

#include <chrono>
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
// the `take` of its fetches; the one that uses what is left waits for the end
// of the run, too, by a queue that gets an element then. When the run is over,
// the queues of fetches are closed, so that nobody waits for one that is dead;
// when it has failed, its error is the answer of all steps. A step that fails
// ends the run.

// For kernels that cannot be interrupted; then they end on their own.
inline constexpr std::chrono::seconds kLongestEnd{5};
// When the end of a session, with all that belong to it, gives up waiting.
using EndTime = std::chrono::steady_clock::time_point;
inline EndTime longest_end() { return EndTime::clock::now() + kLongestEnd; }
// Not negative.
std::chrono::nanoseconds time_left(EndTime by);
// Cancels what the session runs, waits for it until then, and empties a
// container that only it has: what waits in a queue there is told so, by the
// queue.
void end_session(actors::Session& session, const std::string& container,
                 EndTime by);

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

  // Starts the run of this graph. The time-out of the options is that
  // of steps. `on_over` is called once, on any thread, when the run has ended.
  // InvalidArgument if there is nothing to run, or a name is wrong; errors of a
  // session.
  static Result<std::shared_ptr<PartialRun>> start(
      graph::Graph graph, actors::SessionOptions options, const Setup& setup,
      std::function<void()> on_over);

  // One step; it compiles. InvalidArgument for a feed or fetch that was not set
  // up, that was there in an earlier step, or that needs a feed which has not
  // come. `answer` gets the fetches in their order; it is called once, on any
  // thread. A time-out of zero is that of the options of start().
  void step(Feeds feeds, const std::vector<std::string>& fetches,
            std::chrono::nanoseconds timeout, const actors::CancelToken& token,
            Answer answer);
  // Whether the run has ended, no step is open, and none can say more than the
  // steps before.
  bool is_over() const;
  // Cancels what runs, waits for it, for a limited time, and removes the
  // queues.
  void close(EndTime by = longest_end());

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
  Result<graph::Node*> add_enqueue(const std::string& name,
                                   const graph::Endpoint& queue,
                                   const graph::Endpoint& value);
  Result<graph::Node*> add_dequeue(const std::string& name,
                                   const graph::Endpoint& queue, DataType type);
  // Checks a step, and marks what it uses. REQUIRES: the lock is held
  Status claim(const Feeds& feeds, const std::vector<std::string>& fetches);
  // Whether there is nothing left to feed or fetch. REQUIRES: the lock is held
  bool is_used_up() const;
  Status add_end(const Setup& setup);
  // The answer of a step from that of its puts and takes.
  Result<std::vector<Tensor>> on_step(uint64_t number,
                                      Result<std::vector<Tensor>> result);
  // The first feed that has not come and that the tensor needs; or null.
  const std::string* missing_for(const graph::Endpoint& source) const;
  void on_over(Status status);
  Result<std::string> key(const std::string& name) const;

  graph::Graph graph_;
  Ports feeds_, fetches_;  // the lock guards `is_used`
  std::vector<std::string> outs_;
  std::string end_put_, end_take_;  // nodes: of the queue of the end
  std::string container_;
  std::unique_ptr<actors::Session> session_;
  actors::Callable tell_end_;
  actors::CancelToken token_;  // of the run
  std::chrono::nanoseconds timeout_{0};
  std::function<void()> on_end_;

  mutable std::mutex mutex_;    // guards the below
  std::optional<Status> over_;  // of the run
  bool has_failed_step_ = false;
  std::map<uint64_t, actors::CancelToken> open_;  // steps
  uint64_t last_step_ = 0;
};

}  // namespace tagflow::net
