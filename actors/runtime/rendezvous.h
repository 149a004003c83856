// Rendezvous: the actor at which the Sends and Recvs of a step meet.
//
// Note [Transfers]
// The key of a token has two parts: the *transfer* is static, and consists of
// the sending device, its incarnation, the receiving device and the tensor; the
// other part is the tag of the token. An iteration posts one kTransfers batch
// with all tokens that it has sent, and all that its Recvs have requested,
// since the last such batch. The rendezvous answers with one kReceived batch
// per waiting iteration. Either side may come first. A dead token is sent like
// a live one, so that the other side receives it, too.
//
// A waiting Recv holds no unit of activity (Note [Activity] in runner.h): if
// nothing else in the step is active, nobody will ever send to it, unless a
// peer does (Note [A part of a step] in peer_wait.h).
//
// A rendezvous that knows peers also takes the tokens of Sends whose Recv is in
// another process (peer_rendezvous.h). Such a Send is the `waiter` of its
// token: it gets a token in a kReceived batch when its own has been accepted.
//
// Invariants:
//   1. Each key is sent once and received once: a second send or receive is an
//      error.
//   2. A token is moved, never copied.
//   3. After an error of the step, reset() drops all tokens and waiting Recvs.
//   4. A key is in its transfer's slot or in the table, never in both.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "actors/runtime/engine_actor.h"
#include "actors/runtime/transfer.h"

namespace tagflow::actors {

// The interface for the partitions of an executable: an actor that takes
// kTransfers batches and answers with kReceived ones.
class Rendezvous : public EngineActor {
 public:
  using EngineActor::EngineActor;
  // A step starts: what peers send to it may come from now on. REQUIRES: the
  // step is not over until reset().
  virtual void begin(Step&) {}
  // Drops all tokens and waiting Recvs. REQUIRES: the step is quiet.
  virtual void reset() = 0;
};

// The rendezvous of partitions in one process.
//
// Life cycle: spawned with the partitions of a run, for one step at a time;
// empty between steps; stopped with their executable.
class LocalRendezvous : public Rendezvous {
 public:
  // `transfers` are by number, all with both ends here, and outlive the actor.
  // Batches come from `store`; if it is null, the actor owns them.
  LocalRendezvous(caf::actor_config& config, HandOff policy,
                  const std::vector<Transfer>& transfers,
                  BatchStore* store = nullptr);

  void reset() override;

 protected:
  void on_batch(Batch* batch, Runner& runner) override;

  struct Key {
    uint32_t transfer = 0;
    devices::Tag tag;
    bool operator==(const Key&) const = default;
  };
  // An iteration, and its Recv.
  struct Receiver {
    EngineActor* actor = nullptr;
    uint32_t node = 0;
  };
  void send(const Key& key, Token& token, Step& step);
  void receive(const Key& key, const Receiver& receiver, Step& step);
  // Adds to what post_answers() posts to the receiver.
  void answer(const Receiver& receiver, bool is_dead, Tensor&& value,
              Step& step);
  void post_answers(Runner& runner);
  const Transfer& transfer(uint32_t number) const { return transfers_[number]; }

 private:
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  // The side that came first: a Recv if receiver.actor is not null, otherwise a
  // token.
  struct Entry {
    Receiver receiver;
    bool is_dead = false;
    Tensor value;
  };
  struct Slot {
    bool is_full = false;
    devices::Tag tag;
    Entry entry;
  };
  using Table = std::unordered_map<Key, Entry, KeyHash>;

  // Moves the entry of `key` to `entry`, and frees its place. False if there is
  // no entry yet.
  bool take(const Key& key, Entry& entry);
  // Adds an entry without a receiver or a value. REQUIRES: `key` has no entry.
  Entry& add(const Key& key);
  std::string describe(const Key& key) const;

  const std::vector<Transfer>& transfers_;
  // By number of the transfer: its first entry. Most transfers have only one
  // entry at a time; entries of further tags are in the table.
  std::vector<Slot> slots_;
  size_t num_full_ = 0;  // slots; reset() looks at them only if there are any
  Table table_;
  // Unused nodes of the table, for reuse: a steady loop allocates none.
  std::vector<Table::node_type> spare_;
  std::vector<Batch*> answers_;  // of the batch in hand, one per iteration
};

// A LocalRendezvous: see EngineOptions.
caf::actor spawn_local_rendezvous(caf::actor_system& system, HandOff policy,
                                  const std::vector<Transfer>& transfers,
                                  BatchStore* store);

}  // namespace tagflow::actors
