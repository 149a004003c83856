// Parts: the parts of steps at one worker, and what peers send to them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "net/protocol/worker_steps.h"
#include "net/wire/messages.h"

namespace tagflow::actors {
class BatchStore;  // actors/runtime/batch.h
class Step;        // actors/runtime/step.h
}  // namespace tagflow::actors

namespace tagflow::net {

class LinkedPort;
class PeerSession;

// Knows by Note [Early and dead] what becomes of a token: it goes to the port
// of its step, it waits until the step begins, or it is dropped. One per
// incarnation of a worker. Thread-safe.
class Parts {
 public:
  // Early tokens that are kept, announced ones too, which no window counts.
  static constexpr size_t kMostEarly = size_t{1} << 16;

  // Of links: the small one's goes on with the step, the bulk one's does not.
  enum class Thread : uint8_t { kLent, kBulk };

  Parts() = default;
  // REQUIRES: no port is open, and no session is started.
  ~Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // From the master's link. `actions` are for the worker.
  Status on_run(uint64_t step, WorkerSteps::Actions& actions);
  void on_abort(uint64_t step, const Status& cause,
                WorkerSteps::Actions& actions);
  // The part has its first error, and is not at rest.
  void on_error(uint64_t step, const Status& status,
                WorkerSteps::Actions& actions);
  // The part is at rest, or was never started. Returns its counts.
  MessageCounts on_over(uint64_t step, const Status& status, bool has_committed,
                        WorkerSteps::Actions& actions);
  // What has gone to peers and come from them, in a step that is active.
  MessageCounts counts(uint64_t step) const;

  // Of ports: a step that is active may be sent to. REQUIRES: the caller has a
  // unit of the step, which is not over until close().
  void open(uint64_t number, actors::Step& step, actors::BatchStore& store,
            LinkedPort& port);
  void close(uint64_t number, MessageCounts counts);

  // Of sessions. An error ends the session.
  Status on_tokens(PeerSession& from, Tokens tokens);
  Status on_pull(PeerSession& from, const Pull& pull, Thread thread);
  // `value`: none of a dead token.
  void on_pulled(PeerSession& from, uint64_t step, const TransferKey& key,
                 Result<std::optional<Tensor>> value);
  // A session that is lost, and has been stopped, goes: what came early from it
  // goes, too.
  void forget(const PeerSession& session);

 private:
  struct Open {
    actors::Step* step = nullptr;
    actors::BatchStore* store = nullptr;  // of the port's context
    LinkedPort* port = nullptr;
  };
  // A unit of a step that is open, as long as it lives.
  class Entered;
  struct Early {
    PeerSession* from = nullptr;
    Tokens tokens;
  };

  Entered enter(uint64_t number);
  // REQUIRES for these two: the lock is held.
  Status keep(PeerSession& from, Tokens tokens);
  std::vector<Early> take_early(uint64_t step);
  static void drop(const std::vector<Early>& early);
  static void drop(PeerSession& from, const Tokens& tokens);
  static Status deliver(const Open& open, PeerSession& from, Tokens tokens);

  mutable std::mutex mutex_;  // guards the below
  WorkerSteps steps_;
  std::unordered_map<uint64_t, Open> open_;
  // Of those that were closed, and are not over.
  std::unordered_map<uint64_t, MessageCounts> last_counts_;
  std::map<uint64_t, std::vector<Early>> early_;  // by step
  size_t num_early_ = 0;                          // tokens in it
};

}  // namespace tagflow::net
