// SendWindow and ReceiveWindow: how far a sender runs ahead of its receiver.
#pragma once

#include <utility>

#include "graph/status.h"
#include "net/protocol/ids.h"

namespace tagflow::net {

// Note [Window]
// Each direction of a session between two workers has a window: the bytes of
// tokens that may be at the receiver, or on the way, before a Recv has consumed
// them. A Send has exactly one message:
//   - the token itself (*inline*), if it is small and the window has room. The
//     Send is over when the link has taken it;
//   - else an *announcement*, which needs no window. The Send is *held* until
//     the receiver pulls the token: it is outstanding, so its iteration cannot
//     end, and `parallel_iterations` bounds how many are held.
// A Recv pulls what was announced, and nothing else. Pulls and what answers
// them need no window: a Recv waits for each, so they are bounded by the Recvs.
//
// A token's charge is its bytes and a constant, since dead tokens and empty
// tensors take memory, too. Its credit returns when a Recv has consumed it, or
// when it was dropped with its step. The receiver returns credit by quarters of
// the window, so that most tokens cause no message. What it still owes makes
// some Sends announce instead of send, and blocks none.
//
// The window closes no cycle of waits. What a Recv wants is at the receiver
// already, or on its way on a link that delivers, or announced, and is then
// pulled without any window. What a full window delays is the end of a held
// Send and so the ends of iterations and frames of the sender. A Recv of
// iteration n waits only for predicates of iteration n - 1, and every Exit is
// ordered after the nodes of its frame on all devices: so nobody needs the end
// of an iteration, or of a frame, to reach the Recv that pulls.
//
// Invariants, with everything in flight delivered:
//   1. available + unconsumed + owed == size
//   2. unconsumed <= size. A peer that exceeds it ends the session.
//   3. Both ends of the window end with the session; credit for its tokens is
//      never returned on another.
constexpr uint64_t kDefaultWindow = uint64_t{1} << 20;
constexpr uint64_t kTokenCharge = 64;
// The largest token that is sent unasked.
constexpr uint64_t kSmallToken = uint64_t{16} << 10;

inline uint64_t charge_of(uint64_t bytes) { return bytes + kTokenCharge; }

// The sender's end. Thread-safe: no.
class SendWindow {
 public:
  explicit SendWindow(uint64_t size) : size_(size), available_(size) {}

  // Whether a token of so many bytes goes inline; then its charge is taken.
  bool take(uint64_t bytes, uint64_t small = kSmallToken) {
    if (bytes > small || charge_of(bytes) > available_) return false;
    available_ -= charge_of(bytes);
    return true;
  }

  // The receiver returns credit. An error if it was never taken, which ends
  // the session.
  Status on_credit(uint64_t bytes) {
    if (bytes > size_ - available_)
      return invalid_argument(
          "[window] a peer returns credit for {} bytes; {} are unconsumed",
          bytes, size_ - available_);
    available_ += bytes;
    return Status();
  }

  uint64_t available() const { return available_; }

 private:
  const uint64_t size_;
  uint64_t available_;
};

// The receiver's end. Thread-safe: no.
class ReceiveWindow {
 public:
  explicit ReceiveWindow(uint64_t size) : size_(size) {}

  // A token has come inline. An error if the sender had no credit for it, which
  // ends the session.
  Status on_token(uint64_t bytes) {
    const uint64_t used = unconsumed_ + owed_;
    if (bytes > size_ || charge_of(bytes) > size_ - used)
      return error(Code::kResourceExhausted,
                   "[window] a peer sends {} bytes, and {} of the window's {} "
                   "are used",
                   bytes, used, size_);
    unconsumed_ += charge_of(bytes);
    return Status();
  }

  // A token of so many bytes was consumed or dropped. Returns the credit to
  // send now, or 0.
  // REQUIRES: on_token() has taken it
  uint64_t on_consumed(uint64_t bytes) {
    unconsumed_ -= charge_of(bytes);
    owed_ += charge_of(bytes);
    return owed_ >= size_ / 4 ? std::exchange(owed_, 0) : 0;
  }

  uint64_t unconsumed() const { return unconsumed_; }
  uint64_t owed() const { return owed_; }

 private:
  const uint64_t size_;
  uint64_t unconsumed_ = 0;
  uint64_t owed_ = 0;  // consumed, and not returned yet
};

}  // namespace tagflow::net
