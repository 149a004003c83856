// RunTurns: which runs of many clients go next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>

namespace tagflow::net {

// Note [Turns of clients]
// So many runs compute at a time. A run beyond them waits behind the others of
// its client, and clients with runs that wait take turns: whoever has asked for
// a thousand runs delays another client by one. Of each client a 64th of the
// limit, if that is a run or more, computes in any case, even beyond it: so
// endless runs of some clients do not stop the others. A run that has begun,
// and waits for an event such as an element of a queue, does not count, since
// what it waits for may be one of the runs that wait for their turn.
//
// A state machine without threads and clocks. Only add() takes memory: what is
// over can always be taken out, and the next one begin. Thread-compatible.
class RunTurns {
 public:
  using Client = uint64_t;
  using Run = uint64_t;
  // The runs that begin now, in order.
  using Starts = std::list<Run>;

  // REQUIRES: most > 0
  explicit RunTurns(size_t most) : most_(most), own_(most / 64) {}

  // A client asks for a run. If there is no memory for it, it throws, and has
  // changed nothing. REQUIRES: no other run here has its number
  void add(Client client, Run run, Starts& starts);
  // A run is over, or is given up while it waits for its turn; it is here.
  void remove(Client client, Run run, Starts& starts) noexcept;
  // So many runs of the client wait for events: those that began, at most.
  void set_waiting(Client client, size_t count, Starts& starts) noexcept;
  // Whether a run waits for its turn.
  bool has_queue() const { return !rotation_.empty(); }
  // Of all clients.
  struct Sizes {
    size_t begun = 0;
    size_t waiting = 0;  // of those that began, for events
    size_t queued = 0;
  };
  Sizes sizes() const;

 private:
  struct Runs {
    std::list<Run> queue;
    std::list<Client> place;  // in the rotation, while it is not there
    size_t begun = 0;
    size_t waiting = 0;  // of those that began

    size_t computing() const { return begun - waiting; }
  };
  // The next client that may begin a run: its place in the rotation, or the
  // end.
  std::list<Client>::iterator next();
  void start_next(Starts& starts) noexcept;

  const size_t most_;
  const size_t own_;      // of each client, whatever others do; 0: none
  size_t computing_ = 0;  // began, and do not wait
  std::map<Client, Runs> clients_;
  std::list<Client> rotation_;  // those with a queue, the next one first
};

}  // namespace tagflow::net
