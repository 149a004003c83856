// PullQueue: the pulls of a peer, and what it has not read of the answers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "graph/status.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// A pull is answered at once, and its Send is over then. So a peer that pulls
// and does not read would have the answers pile up here, and the iterations go
// on. Therefore with more than `most_unsent` bytes that the peer has not read,
// pulls wait: their Sends are held, of which `parallel_iterations` bounds the
// number. A peer of ours always reads, so this closes no cycle of waits: see
// Note [Window] in net/protocol/window.h. Thread-safe: no.
class PullQueue {
 public:
  static constexpr uint64_t kMostUnsent = uint64_t{1} << 30;
  // Pulls that wait. A Recv of the peer waits for each.
  static constexpr size_t kMostWaiting = size_t{1} << 20;

  explicit PullQueue(uint64_t most_unsent = kMostUnsent)
      : most_unsent_(most_unsent) {}

  // Whether to answer the pull now; otherwise next() returns it later. An error
  // if too many wait, which ends the session.
  Result<bool> add(const Pull& pull) {
    if (unsent_bytes_ <= most_unsent_ && waiting_.empty()) return true;
    if (waiting_.size() >= kMostWaiting)
      return error(Code::kResourceExhausted,
                   "[transfer] {} pulls of a peer wait, which does not read "
                   "the answers",
                   waiting_.size());
    waiting_.push_back(pull);
    return false;
  }
  // An answer of so many bytes is being sent.
  void on_send(ObjectId object, uint64_t bytes) {
    unsent_.emplace(uint64_t(object), bytes);
    unsent_bytes_ += bytes;
  }
  // It is with the system, or will not be.
  void on_sent(ObjectId object) {
    const auto found = unsent_.find(uint64_t(object));
    if (found == unsent_.end()) return;  // of a dead token
    unsent_bytes_ -= found->second;
    unsent_.erase(found);
  }
  // The next pull to be answered, if one waits and the peer has read enough.
  std::optional<Pull> next() {
    if (waiting_.empty() || unsent_bytes_ > most_unsent_) return std::nullopt;
    std::optional<Pull> pull(waiting_.front());
    waiting_.pop_front();
    return pull;
  }

 private:
  const uint64_t most_unsent_;
  // The bytes of each object; the peer, which names them, may name one twice.
  std::unordered_multimap<uint64_t, uint64_t> unsent_;
  uint64_t unsent_bytes_ = 0;
  std::deque<Pull> waiting_;
};

}  // namespace tagflow::net
