// What simulated hosts say to each other.
#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "net/protocol/deadlock.h"
#include "net/protocol/master_step.h"
#include "net/protocol/members.h"
#include "net/wire/messages.h"
#include "tests/net/protocol/sim_script.h"

namespace tagflow::net::simulated {

// For std::visit: a function for each kind.
template <class... F>
struct Cases : F... {
  using F::operator()...;
};
template <class... F>
Cases(F...) -> Cases<F...>;

// Between a worker and its master.
struct Verdict {
  Incarnation incarnation{};
  Status status;
};
struct Ready {};
struct Drain {};
struct Ping {};
struct Pong {};
struct Run {
  StepId step{};
  std::shared_ptr<const Script> script;
  std::vector<MasterStep::Part> parts;  // as in the script
  size_t index = 0;                     // of the receiver's
  uint64_t session = 0;                 // of the master
};
// Of a worker: its part has failed.
struct Abort {
  StepId step{};
  Status status;
};
struct Done {
  StepId step{};
  MasterStep::Done done;
  MessageCounts counts;
  uint64_t value = 0;
  Shards fetched;
};
struct PairLost {
  TaskIndex peer{};
  Incarnation incarnation{};
};
struct Report {
  StepId step{};
  DeadlockWatch::Report report;
};
struct Ask {
  StepId step{};
  uint32_t round = 0;
};

// Between workers.
struct PeerHello {
  TaskIndex from{};
  Incarnation from_incarnation{};
  Incarnation to_incarnation{};
};
struct PeerAccept {};
struct SmallToken {
  StepId step{};
  TransferKey key;
  Token token;
};
struct Announcement {
  StepId step{};
  TransferKey key;
};
struct Pull {
  StepId step{};
  TransferKey key;
  uint64_t object = 0;
};
struct Object {
  uint64_t object = 0;
  Token token;
};
struct Credit {
  uint64_t bytes = 0;
};

using Message =
    std::variant<Members::Hello, Verdict, Ready, Drain, Ping, Pong, Run, Abort,
                 Done, PairLost, Report, Ask, PeerHello, PeerAccept, SmallToken,
                 Announcement, Pull, Object, Credit>;

}  // namespace tagflow::net::simulated
