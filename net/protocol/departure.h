// Departure: how a worker leaves its master.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "graph/status.h"

namespace tagflow::net {

// Note [Departure]
// A worker that is asked to leave moves no state: it waits until its steps are
// over, and goes. No step may fail by that. Only the master knows when a step
// is over, since what a part has said and sent may still be in the links. So
// the worker asks, and the master answers:
//
//    worker                        master
//      begin() ------ Drain ------> add(): a step that needs the worker fails
//                                   before it begins
//                                   take(): no step that runs needs it
//      on_agreed() <- Drain -------
//
// Runs that cross the first Drain are steps like any other. None follows the
// second one, so the worker is free, and ends its links. Without a master it is
// free at once, as it is when it loses the master. A master whose steps do not
// end is a matter of the owner, who does not wait for ever.

// At a worker: one per incarnation. Thread-safe: no.
class Departure {
 public:
  // The worker is to leave. Returns whether its master must be asked.
  bool begin(bool has_master) {
    if (state_ != State::kStays) return false;
    state_ = has_master ? State::kAsks : State::kIsFree;
    return has_master;
  }
  // The master agrees. An error if nobody has asked it: its link ends.
  Status on_agreed() {
    if (state_ != State::kAsks)
      return error(Code::kDataLoss,
                   "[drain] the master lets a worker go that did not ask");
    state_ = State::kIsFree;
    return {};
  }

  bool has_begun() const { return state_ != State::kStays; }
  bool is_free() const { return state_ == State::kIsFree; }

 private:
  enum class State : uint8_t { kStays, kAsks, kIsFree };
  State state_ = State::kStays;
};

// At a master: who has asked, and has no answer. `Member` names a member, as a
// pointer does. Thread-safe: no.
template <class Member>
class Departures {
 public:
  void add(Member member) {
    if (std::ranges::find(asking_, member) == asking_.end())
      asking_.push_back(member);
  }
  // The member is lost: no answer is due.
  void remove(Member member) { std::erase(asking_, member); }
  // Takes those that no running step needs: they are free. To be called after
  // add(), and at the end of each step.
  template <class IsNeeded>
  std::vector<Member> take(IsNeeded is_needed) {
    std::vector<Member> free;
    std::erase_if(asking_, [&](const Member& member) {
      if (is_needed(member)) return false;
      free.push_back(member);
      return true;
    });
    return free;
  }
  bool empty() const { return asking_.empty(); }

 private:
  std::vector<Member> asking_;
};

}  // namespace tagflow::net
