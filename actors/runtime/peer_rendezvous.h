// PeerRendezvous: the rendezvous of a part of a step, whose other parts are in
// other processes. A PeerPort is the way to these.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/runtime/engine.h"
#include "actors/runtime/transfer.h"
#include "devices/kernel.h"
#include "graph/tensor.h"

namespace tagflow::actors {

class BatchStore;   // actors/runtime/batch.h
struct Batch;       // actors/runtime/batch.h
class EngineActor;  // actors/runtime/engine_actor.h
class Step;         // actors/runtime/step.h

// An iteration, and its Send or Recv. Valid while the node is outstanding.
struct TransferEnd {
  EngineActor* iteration = nullptr;
  uint32_t node = 0;
};

// What Sends and Recvs that are outstanding have waited for. Thread-compatible.
class TransferAnswers {
 public:
  // The token of a Send was accepted.
  void accept(const TransferEnd& send) { add(send, false, {}); }
  // The token of a Recv.
  void add(const TransferEnd& end, bool is_dead, Tensor value) {
    answers_.push_back({end, is_dead, std::move(value)});
  }
  bool empty() const { return answers_.empty(); }
  // Gives the answers to their iterations, in batches of the store that
  // PeerPort::begin() got. REQUIRES: the thread is not one of the engine's, and
  // has a unit of the step. May throw std::bad_alloc.
  void post(Step& step, BatchStore& store);
  // As post(), and the thread is lent to the engine: it runs the iterations,
  // and what follows, for a few hundred microseconds at most. So an answer for
  // which a step waits wakes no other thread.
  void run(Step& step, BatchStore& store);

 private:
  friend class PeerRendezvous;
  struct Answer {
    TransferEnd end;
    bool is_dead = false;
    Tensor value;
  };
  // Moves the answers into batches that have no unit yet, a list.
  Batch* take_batches(Step& step, BatchStore& store);

  std::vector<Answer> answers_;
};

// Carries the transfers of a part that have one end here. One per rendezvous,
// so for one step at a time. Called by one thread at a time. What it throws is
// an error of the step.
class PeerPort {
 public:
  virtual ~PeerPort() = default;

  // The step starts: peers may send to it from now on, which is while
  // Step::try_enter() holds.
  virtual void begin(Step& step, BatchStore& store) = 0;
  // The step has ended. Drops all that is left of it. No effect before begin().
  virtual void end() = 0;

  // A Send has a token for its peer; a Recv waits for one. `answers` takes what
  // can be answered at once; a later answer is posted.
  virtual void send(uint32_t transfer, const devices::Tag& tag, bool is_dead,
                    Tensor value, const TransferEnd& send,
                    TransferAnswers& answers) = 0;
  virtual void receive(uint32_t transfer, const devices::Tag& tag,
                       const TransferEnd& recv, TransferAnswers& answers) = 0;
  // Follows calls of send(). What these have given must leave now.
  virtual void flush() = 0;
};

// Makes the port for the transfers, by number, which outlive it.
using MakePort = std::function<std::unique_ptr<PeerPort>(
    const std::vector<Transfer>& transfers)>;

// For the Peers of an executable.
SpawnRendezvous spawn_with_port(MakePort make_port);

}  // namespace tagflow::actors
