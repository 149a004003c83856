// PeerWait: the wait of a step whose partitions are not all in this process.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace tagflow::actors {

class Step;

// Note [A part of a step]
// What one process runs of a step that runs in several is a *part*. A part that
// has nothing to do is not over, since a token of a peer may come at any time:
// from its start until the root frames of all its partitions have ended, it has
// one wait for its peers. A token of a peer enters by Step::try_enter(). When
// the wait has ended, no token can come any more: each Recv is a node of a
// frame that a root frame waits for. An error of the step ends the wait, too.
//
// A Send to a peer stays outstanding until the rendezvous answers that the
// peer, or the link to it, has accepted its token: so `parallel_iterations`
// bounds how far a part runs ahead of a slow peer.
class PeerWait {
 public:
  // Begins the wait. `describe` gives what the step waits for, in words, and is
  // called on any thread. REQUIRES: the caller has a unit of the step, which
  // has `partitions` partitions here, at least one.
  PeerWait(Step& step, size_t partitions,
           std::function<std::string()> describe);
  PeerWait(const PeerWait&) = delete;
  PeerWait& operator=(const PeerWait&) = delete;

  // The root frame of a partition has ended. Called once for each, by a caller
  // who has a unit of the step. Thread-safe.
  void end_partition();

 private:
  class Wait;
  const std::shared_ptr<Wait> wait_;
};

}  // namespace tagflow::actors
