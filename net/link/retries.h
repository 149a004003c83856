// Retries: whether another attempt to connect may help.
#pragma once

#include "graph/status.h"

namespace tagflow::net {

// Of one process that connects to another one's address. Time mends what is
// Unavailable, and a refusal that is Aborted. It does not mend processes that
// do not fit together, such as those of two builds or with two secrets. What
// looks like no process of ours may be one that ended just then; so it counts
// if it comes kMostDoubts times. A task that is taken (AlreadyExists) may be
// that of a process whose loss has not been noticed: its kMostTaken attempts
// last longer than that, with the pauses of Membership.
// Thread-compatible.
class Retries {
 public:
  static constexpr int kMostDoubts = 3;
  static constexpr int kMostTaken = 7;

  // Whether another attempt may end otherwise than the one that has failed so.
  bool may_help(const Status& failure) {
    switch (failure.code()) {
      case Code::kFailedPrecondition:
      case Code::kInvalidArgument:
      case Code::kUnauthenticated:
        return false;
      case Code::kDataLoss:
        return ++doubts_ < kMostDoubts;
      case Code::kAlreadyExists:
        return ++taken_ < kMostTaken;
      default:
        return true;
    }
  }

 private:
  int doubts_ = 0;
  int taken_ = 0;
};

}  // namespace tagflow::net
