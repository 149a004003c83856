// Rendezvous: the actor at which the Sends and Recvs of a step meet.
//
// Note [Transfers]
// What partitions exchange is named by a *transfer*, the static part of the
// key: sending device, its incarnation, receiving device and tensor; and by the
// tag of the token. An iteration posts, in one kTransfers batch, all tokens
// that it sends and all that its Recvs ask for since the last; the rendezvous
// answers with one kReceived batch per waiting iteration. Either side may come
// first. A dead token is sent like a live one, so that the other side hears of
// it.
//
// A Recv that waits holds no unit of activity (Note [Activity] in runner.h):
// if nothing else of the step moves, nobody will ever send to it.
//
// Invariants:
//   1. Each key is sent once and received once: a second time is an error.
//   2. A token is handed over, never copied.
//   3. An error of the step leaves no token and nobody waiting: reset().
//   4. A key is in its transfer's slot or in the table, never in both.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "actors/runtime/engine_actor.h"

namespace tagflow::actors {

// What an executable's partitions see of it: an actor that takes kTransfers
// batches and answers with kReceived ones.
class Rendezvous : public EngineActor {
 public:
  using EngineActor::EngineActor;
  // Drops all tokens, and forgets who waits. For the time when the step is
  // quiet.
  virtual void reset() = 0;
};

// Between partitions of one process.
//
// Life cycle: spawned with the partitions of a run, for one step at a time;
// empty between steps; stopped with their executable.
class LocalRendezvous : public Rendezvous {
 public:
  // `transfers` by number; outlives the actor. Its batches are those of
  // `store`, or, without, its own.
  LocalRendezvous(caf::actor_config& config, HandOff policy,
                  const std::vector<std::string>& transfers,
                  BatchStore* store = nullptr);

  void reset() override;

 protected:
  void on_batch(Batch* batch, Runner& runner) override;

 private:
  struct Key {
    uint32_t transfer = 0;
    devices::Tag tag;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  // An iteration, and its Recv.
  struct Receiver {
    EngineActor* actor = nullptr;
    uint32_t node = 0;
  };
  // Who came first: a token, or, where receiver.actor is not null, a Recv.
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

  void send(const Key& key, Token& token, Step& step);
  void receive(const Key& key, const Receiver& receiver, Step& step);
  // Moves the entry of `key` to `entry`, and frees its place. False where
  // nobody came yet.
  bool take(const Key& key, Entry& entry);
  // A new entry, without a receiver or a value. REQUIRES: `key` has none.
  Entry& add(const Key& key);
  void answer(const Receiver& receiver, bool is_dead, Tensor&& value,
              Step& step);
  void post_answers(Runner& runner);
  std::string describe(const Key& key) const;

  const std::vector<std::string>& transfers_;
  // By number of the transfer: its first entry. Most transfers have no more at
  // a time; those of further tags are in the table.
  std::vector<Slot> slots_;
  size_t num_full_ = 0;  // slots; reset() looks at them only if there are any
  Table table_;
  // The table's entries at rest, for reuse: a steady loop allocates none.
  std::vector<Table::node_type> spare_;
  std::vector<Batch*> answers_;  // of the batch in hand, one per iteration
};

// A LocalRendezvous: see EngineOptions.
caf::actor spawn_local_rendezvous(caf::actor_system& system, HandOff policy,
                                  const std::vector<std::string>& transfers,
                                  BatchStore* store);

}  // namespace tagflow::actors
