// Membership: a worker's view of the directory of its cluster.
#pragma once

#include <boost/container/small_vector.hpp>
#include <optional>
#include <variant>

#include "graph/status.h"
#include "net/protocol/ids.h"
#include "net/protocol/life.h"

namespace tagflow::net {

// Whether a worker that was refused with this error should ask again.
bool may_join_later(Code code);

// A worker asks to join until it is accepted, and joins anew whenever it has
// lost the directory:
//
//    waiting --(time)--> joining --(accepted)--> joined
//       ^                   |                       |
//       +---(not accepted)--+-------(lost)----------+
//
// Invariants:
//   1. Every attempt has an incarnation of its own. It cannot know whether the
//      directory has accepted an attempt that failed on this side, and has
//      lost it.
//   2. Between two attempts there is a Clear: what belongs to an incarnation
//      ends with it, so a new one has none of it.
//   3. The pauses between failed attempts double from kFirstPause to
//      kLongestPause, less a random half, so that the workers of a directory
//      that comes back do not ask all at once.
//
// `random`: 64 random bits, which are drawn anew for each call.
// One per worker process. Thread-safe: no.
class Membership {
 public:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::seconds(5);
  // For an answer to a hello.
  static constexpr Duration kPatience = std::chrono::seconds(2);

  enum class State : uint8_t { kWaiting, kJoining, kJoined, kGivenUp };

  // Connect to the directory, and say hello under this incarnation.
  struct Join {
    Incarnation incarnation{};
  };
  // Close the links of the incarnation, and end all that belongs to it.
  struct Clear {
    Incarnation incarnation{};
    Status reason;
  };
  // Ask the directory for a sign of life.
  struct Ping {};
  // The directory will never accept this process.
  struct GiveUp {
    Status reason;
  };
  using Action = std::variant<Join, Clear, Ping, GiveUp>;
  using Actions = boost::container::small_vector<Action, 4>;

  explicit Membership(Time now, LifeRules rules = {})
      : rules_(rules), next_(now) {}

  // The directory's verdict on the hello of an incarnation. Verdicts on older
  // incarnations have no effect.
  void on_accepted(Incarnation incarnation, Time now);
  void on_refused(Incarnation incarnation, const Status& why, Time now,
                  uint64_t random, Actions& actions);
  void on_heard(Incarnation incarnation);
  // The link to the directory has ended, or could not be made.
  void on_lost(Incarnation incarnation, const Status& why, Time now,
               uint64_t random, Actions& actions);

  void on_time(Time now, uint64_t random, Actions& actions);
  // When on_time() wants to be called.
  Time next() const;

  State state() const { return state_; }
  // Of the present attempt; kNone while it waits.
  Incarnation incarnation() const { return incarnation_; }

 private:
  void end(const Status& why, Time now, uint64_t random, Actions& actions);

  const LifeRules rules_;
  State state_ = State::kWaiting;
  Incarnation incarnation_ = Incarnation::kNone;
  Duration pause_ = kFirstPause;
  Time next_;                 // of the next attempt, or the end of patience
  std::optional<Life> life_;  // while it is joined
};

}  // namespace tagflow::net
