// Inbox and Outbox: the transfers of one step at one worker.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>

#include "graph/status.h"
#include "net/wire/messages.h"

namespace tagflow::net {

struct TransferKeyHash {
  size_t operator()(const TransferKey& key) const {
    // The numbers of instances are hashes already.
    uint64_t hash = key.instance.high ^ (key.instance.low << 1);
    hash ^= (uint64_t(key.iteration) << 20) ^ key.transfer;
    return size_t(hash * 0x9e3779b97f4a7c15u);
  }
};

// What has come from peers and what Recvs want, by key; either may be first.
//
//                     on_recv           token: given to the Recv
//      (nothing) ----------------> wanted ----------------------> (nothing)
//          |                          | announced: pull
//          | token                    v      object: given to the Recv
//          +-------> arrived       pulled ----------------------> (nothing)
//          |            on_recv: taken
//          | announced                on_recv: pull
//          +-------> announced ----------------> pulled
//
// `Value`: a token that came inline, with what its credit needs. `Waiter`: the
// Recv. An error means that a peer does not keep the protocol: the session
// ends. Thread-safe: no.
template <class Value, class Waiter>
class Inbox {
 public:
  enum class Next : uint8_t { kTaken, kPull, kWait };
  // Announced tokens that no Recv wants yet: no window counts them, and they
  // take memory.
  static constexpr size_t kMostAnnounced = size_t{1} << 20;

  // A token came. Moves it from `value` and keeps it; or leaves it there, and
  // returns the Recv that waits for it.
  Result<std::optional<Waiter>> on_token(const TransferKey& key, Value& value) {
    auto [place, is_new] = entries_.try_emplace(key);
    Entry& entry = place->second;
    if (is_new) {
      entry.state = State::kArrived;
      entry.value.emplace(std::move(value));
      return std::optional<Waiter>();
    }
    if (entry.state != State::kWanted) return second(key);
    std::optional<Waiter> waiter = std::move(entry.waiter);
    entries_.erase(place);
    return waiter;
  }

  // A token was announced. Returns whether to pull it now.
  Result<bool> on_announced(const TransferKey& key) {
    if (num_announced_ >= kMostAnnounced)
      return error(Code::kResourceExhausted,
                   "[transfer] a peer has announced {} tokens that no Recv "
                   "wants yet, the limit",
                   num_announced_);
    auto [place, is_new] = entries_.try_emplace(key);
    Entry& entry = place->second;
    if (!is_new && entry.state != State::kWanted) return second(key);
    entry.state = is_new ? State::kAnnounced : State::kPulled;
    if (is_new) ++num_announced_;
    return !is_new;
  }

  // A Recv starts. kTaken: `value` has its token. kPull: pull its token, which
  // on_object() then tells. kWait: a later event returns the waiter.
  // REQUIRES: no other Recv of this key has started
  Next on_recv(const TransferKey& key, Waiter waiter,
               std::optional<Value>& value) {
    auto [place, is_new] = entries_.try_emplace(key);
    Entry& entry = place->second;
    if (!is_new && entry.state == State::kArrived) {
      value = std::move(entry.value);
      entries_.erase(place);
      return Next::kTaken;
    }
    if (!is_new) --num_announced_;
    entry.waiter.emplace(std::move(waiter));
    entry.state = is_new ? State::kWanted : State::kPulled;
    return is_new ? Next::kWait : Next::kPull;
  }

  // What was pulled has come. Returns its Recv.
  Result<Waiter> on_object(const TransferKey& key) {
    const auto place = entries_.find(key);
    if (place == entries_.end() || place->second.state != State::kPulled)
      return invalid_argument(
          "[transfer] a peer sends the token of transfer {}, iteration {}, "
          "which was not pulled",
          key.transfer, key.iteration);
    Waiter waiter = std::move(*place->second.waiter);
    entries_.erase(place);
    return waiter;
  }

  // Forgets everything. `drop` gets each token that no Recv has consumed.
  template <class Drop>
  void clear(Drop&& drop) {
    for (auto& [key, entry] : entries_)
      if (entry.state == State::kArrived) drop(*entry.value);
    entries_.clear();
    num_announced_ = 0;
  }

  bool empty() const { return entries_.empty(); }

 private:
  enum class State : uint8_t { kWanted, kArrived, kAnnounced, kPulled };
  struct Entry {
    State state = State::kWanted;
    std::optional<Value> value;
    std::optional<Waiter> waiter;
  };

  static Status second(const TransferKey& key) {
    return invalid_argument(
        "[transfer] a peer sends a second token of transfer {}, iteration {}",
        key.transfer, key.iteration);
  }

  std::unordered_map<TransferKey, Entry, TransferKeyHash> entries_;
  size_t num_announced_ = 0;  // entries that are kAnnounced
};

// The tokens that were announced to peers and are held until they are pulled.
// Thread-safe: no.
template <class Value>
class Outbox {
 public:
  // REQUIRES: the key was not announced before
  void announce(const TransferKey& key, Value value) {
    held_.emplace(key, std::move(value));
  }

  // The token, which is held no longer; nothing if there is none: it was
  // dropped, and the puller's step is about to be aborted.
  std::optional<Value> on_pull(const TransferKey& key) {
    auto node = held_.extract(key);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }

  void clear() { held_.clear(); }
  size_t size() const { return held_.size(); }

 private:
  std::unordered_map<TransferKey, Value, TransferKeyHash> held_;
};

}  // namespace tagflow::net
