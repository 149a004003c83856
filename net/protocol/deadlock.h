// QuietPart and DeadlockWatch: whether a step over several workers can go on.
#pragma once

#include <algorithm>
#include <vector>

#include "net/protocol/ids.h"

namespace tagflow::net {

// Note [Deadlock]
// A part is *quiet* if nothing of it runs, and it waits for peers only: for
// tokens, or for pulls of what it holds. A part that waits for a timer, a
// thread, a feed, or a session that is being made is not quiet. Only a message
// of a peer ends its quiet. A part that is over is quiet for ever.
//
// A part that waits for what only other runs can give, as the elements of a
// queue, is quiet, too, but says so: then the step is not deadlocked, it is
// *stalled*, until one of its parts says that it is not quiet any more. A
// worker says this at once of a part that it has called stalled. So the master
// knows it before it knows that the other run, which did this, is over.
//
// A step is deadlocked if all its parts are quiet at the same time and none of
// their messages is under way. The master cannot look at all parts at once. It
// looks at each part twice, and asks for the second looks when it has all the
// first ones. If a part was quiet at both and its counts are the same, then no
// message came between them, so it was quiet all the time between them. These
// times overlap: all contain the moment when the master asked. At that moment
// all parts were quiet, and the sums of their counts are those of that moment;
// if as many messages were received as were sent, none was under way. This is
// Mattern's four counter method, with the rounds told apart by the master.
//
// All messages are counted whose arrival can end a quiet: tokens, those kept
// before the Run included (once it has come), announcements, pulls, and what
// answers pulls, which may take long on the bulk link. It suffices to compare
// the sums over all kinds, since no kind is received more often than it is
// sent.
//
// The first looks come from the workers, who report a quiet that lasts, so that
// a step that is not stuck costs nothing: after 50 ms, and for each report that
// follows in the same step after twice as long, up to kLongestQuiet. A quiet
// that the master knows already is not reported again. So a step that runs for
// long, and in which peers often wait, costs few reports; and a deadlock is
// found within kLongestQuiet and a few messages.
//
// What waits for what is said at the end: the deadlock aborts the step, and a
// part that is told to abort says in its Done what it has waited for.

// A worker's part. Thread-safe: no.
class QuietPart {
 public:
  static constexpr Duration kFirstQuiet = std::chrono::milliseconds(50);
  static constexpr Duration kLongestQuiet = std::chrono::milliseconds(1600);

  // The part is quiet, with these counts; or was, and a message has come that
  // has woken nothing.
  void on_quiet(MessageCounts counts, Time now) {
    if (is_quiet_ && counts == counts_) return;
    is_quiet_ = true;
    counts_ = counts;
    due_ = now + pause_;
  }

  // It is not quiet any more.
  void on_busy() {
    is_quiet_ = false;
    due_ = kNever;
  }

  // Whether the quiet is to be reported now, in round 0.
  bool on_time(Time now) {
    if (now < due_) return false;
    pause_ = std::min(pause_ * 2, kLongestQuiet);
    due_ = kNever;
    return true;
  }

  // The master has asked: what it is told now need not be reported.
  void on_asked() { due_ = kNever; }

  bool is_quiet() const { return is_quiet_; }
  // Of the last on_quiet().
  MessageCounts counts() const { return counts_; }
  // When on_time() wants to be called; kNever if it need not be.
  Time next() const { return due_; }

 private:
  bool is_quiet_ = false;
  MessageCounts counts_;
  Duration pause_ = kFirstQuiet;
  Time due_ = kNever;
};

// The master's view of one step. Thread-safe: no.
class DeadlockWatch {
 public:
  enum class Decision : uint8_t {
    kNothing,
    kAsk,       // every part that is not over for a report in round()
    kDeadlock,  // which ends the step
    kStall,     // is_stalled() begins
  };

  // What a worker says of its part.
  struct Report {
    uint32_t round = 0;  // 0: not asked for
    bool is_quiet = false;
    MessageCounts counts;
    bool waits_for_runs = false;
  };

  explicit DeadlockWatch(size_t num_parts) : parts_(num_parts) {}

  // REQUIRES: part < num_parts
  Decision on_report(size_t part, const Report& report);
  // The part's Done, without an error, came with these counts.
  // REQUIRES: part < num_parts
  Decision on_over(size_t part, MessageCounts counts);

  uint32_t round() const { return round_; }
  // Whether only other runs can make the step go on.
  bool is_stalled() const { return is_stalled_; }

 private:
  struct Part {
    bool is_over = false;
    bool is_quiet = false;
    bool is_asked = false;  // and has not answered
    bool waits_for_runs = false;
    MessageCounts counts;
  };
  Decision examine();

  std::vector<Part> parts_;
  uint32_t round_ = 0;
  size_t num_asked_ = 0;     // have not answered yet
  bool is_changed_ = false;  // since the first looks
  bool is_stalled_ = false;
};

}  // namespace tagflow::net
