// Members: which workers a master has.
#pragma once

#include <boost/container/small_vector.hpp>
#include <optional>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "graph/status.h"
#include "net/protocol/ids.h"
#include "net/protocol/life.h"

namespace tagflow::net {

// Note [Membership]
// A worker is a member from the acceptance of its hello until its small link to
// the master ends, by whatever cause: a loss, silence, eviction, its leave. A
// member is one incarnation of one task:
//
//    hello        on_ready          on_drain
//   -------> joining ----> ready ----------> draining
//               |            |                  |
//               +------------+--------+---------+
//                                     v
//                                   lost, for ever
//
// Steps start on ready members only.
//
// Invariants:
//   1. A task has at most one member. A second process that claims the task is
//      refused until the first is lost.
//   2. A lost incarnation never comes back: what it did after its loss, it did
//      for nobody, since all of its state went with it (membership.h). So the
//      master need not know what a lost worker still does.
//   3. Lost is said exactly once per member.
//   4. What concerns another incarnation than the member's has no effect: it
//      comes from a link that has ended.
//
// One per master. Thread-safe: no.
class Members {
 public:
  enum class State : uint8_t { kJoining, kReady, kDraining, kLost };

  // What a worker says of itself in its hello.
  struct Hello {
    TaskIndex task{};
    Incarnation incarnation{};
    // Of its build: version, ops, kernels, op libraries.
    std::string digest;
  };

  // Ask the member for a sign of life.
  struct Ping {
    TaskIndex task{};
  };
  // Close its links; fail its steps by the reason, which names it.
  struct Lost {
    TaskIndex task{};
    Incarnation incarnation{};
    Status reason;
  };
  using Action = std::variant<Ping, Lost>;
  using Actions = boost::container::small_vector<Action, 4>;

  // `names`: "/job:worker/task:0" and so on, of each task by its index.
  // `digest`: of the master's build.
  Members(std::vector<std::string> names, std::string digest,
          LifeRules rules = {});

  // The index of a further task.
  TaskIndex add(std::string name);

  // OK makes the worker a joining member. An error says why it is refused:
  //   NotFound           the cluster has no such task
  //   InvalidArgument    the incarnation is 0
  //   FailedPrecondition its build differs from the master's
  //   AlreadyExists      the task has a member: perhaps not for long
  //   Aborted            this incarnation has been lost
  // It may try again, under a new incarnation, after the last two:
  // may_join_later() in membership.h.
  Status on_hello(const Hello& hello, Time now);

  // The member has all that steps need of it.
  void on_ready(TaskIndex task, Incarnation incarnation);
  // The member wants to leave: it takes no new step. Its link's end is its
  // leave.
  void on_drain(TaskIndex task, Incarnation incarnation);
  void on_heard(TaskIndex task, Incarnation incarnation);
  // Its link has ended, for `why`; or the master gives it up: a step has waited
  // for it in vain.
  void on_lost(TaskIndex task, Incarnation incarnation, const Status& why,
               Actions& actions);

  // Looks for signs of life.
  void on_time(Time now, Actions& actions);
  // When on_time() wants to be called; kNever without members.
  Time next() const;

  // kLost if the task has no member.
  State state(TaskIndex task) const;
  // kNone if the task has no member.
  Incarnation incarnation(TaskIndex task) const;
  const std::string& name(TaskIndex task) const { return names_[size_t(task)]; }

 private:
  struct Member {
    Incarnation incarnation{};
    State state = State::kJoining;
    Life life;
  };
  Member* find(TaskIndex task, Incarnation incarnation);
  void lose(TaskIndex task, const Status& why, Actions& actions);

  std::vector<std::string> names_;
  const std::string digest_;
  const LifeRules rules_;
  std::vector<std::optional<Member>> members_;  // by task
  // Eight bytes per loss; only processes that know the secret get here.
  std::unordered_set<Incarnation> lost_;
};

}  // namespace tagflow::net
