// Tap: a port before that of a worker, which counts what passes.
#pragma once

#include <doctest/doctest.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "net/wire/greeting.h"
#include "net/wire/messages.h"
#include "net/wire/tensor.h"
#include "tests/net/link/loopback.h"

namespace tagflow::net {

// What has passed a few taps. Thread-safe.
class TapTraffic {
 public:
  struct Count {
    uint64_t frames = 0;
    uint64_t bytes = 0;
  };
  // Of frames of a kind, on connections of masters or of workers, both ways.
  Count of(Role connector, FrameKind kind) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find({connector, kind});
    return found == counts_.end() ? Count() : found->second;
  }
  // Of all kinds but signs of life.
  Count of(Role connector) const {
    const std::lock_guard lock(mutex_);
    Count sum;
    for (const auto& [of, count] : counts_) {
      const auto [role, kind] = of;
      if (role != connector || kind == FrameKind::kPing ||
          kind == FrameKind::kPong)
        continue;
      sum.frames += count.frames;
      sum.bytes += count.bytes;
    }
    return sum;
  }

  // The charge of inline tokens that workers have sent and returned no credit
  // for, by Note [Window], and the most that it was; announcements so far. For
  // a single direction of two workers.
  static constexpr int64_t kCharge = 64;
  struct Window {
    int64_t used = 0, most = 0;
    uint64_t announced = 0;
    uint64_t dead = 0;  // inline ones so far
  };
  Window window() const {
    const std::lock_guard lock(mutex_);
    return window_;
  }

  void add(Role connector, FrameKind kind, std::string_view body) {
    const std::lock_guard lock(mutex_);
    Count& count = counts_[{connector, kind}];
    ++count.frames;
    count.bytes += kFrameHeader + body.size();
    if (kind == FrameKind::kTokens) add(*parse_body<Tokens>(body));
    if (kind == FrameKind::kCredit)
      window_.used -= int64_t(parse_body<Credit>(body)->bytes);
  }

 private:
  void add(const Tokens& tokens) {
    for (const Tokens::Group& group : tokens.groups)
      for (const Tokens::Entry& entry : group.entries) {
        if (std::holds_alternative<Tokens::Announced>(entry.value))
          ++window_.announced;
        if (const auto* tensor = std::get_if<Tensor>(&entry.value))
          window_.used += int64_t(info_of(*tensor).bytes) + kCharge;
        if (std::holds_alternative<Tokens::Dead>(entry.value)) {
          window_.used += kCharge;
          ++window_.dead;
        }
      }
    window_.most = std::max(window_.most, window_.used);
  }

  mutable std::mutex mutex_;
  std::map<std::tuple<Role, FrameKind>, Count> counts_;
  Window window_;
};

// Passes on, frame by frame, what comes to its port. Its end is that of all
// connections.
class Tap {
 public:
  Tap(uint16_t target, TapTraffic& traffic)
      : target_(target), traffic_(traffic), listener_(listen_at_a_port()) {
    acceptor_ = std::thread([this] { accept(); });
  }
  ~Tap() {
    is_over_ = true;
    acceptor_.join();
    for (Passage& passage : passages_) passage.close();
    for (Passage& passage : passages_)
      for (std::thread& thread : passage.threads) thread.join();
  }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  uint16_t port() const { return port_of(listener_.descriptor()); }

  enum class End { kConnector, kListener };
  // Ends the present connections of workers at one end. At the other they are
  // silent.
  void cut_workers(End heard) {
    const std::lock_guard lock(mutex_);
    for (Passage& passage : passages_) {
      if (passage.role != Role::kWorker || passage.is_cut.exchange(true))
        continue;
      ::shutdown(
          (heard == End::kConnector ? passage.from : passage.to).descriptor(),
          SHUT_RDWR);
    }
  }

 private:
  // A connection, with both of its sockets.
  struct Passage {
    Socket from, to;
    Role role{};
    std::atomic<bool> is_cut{false};
    std::array<std::thread, 2> threads;
    void close() const {
      ::shutdown(from.descriptor(), SHUT_RDWR);
      ::shutdown(to.descriptor(), SHUT_RDWR);
    }
  };

  void accept() {
    constexpr int kLook = 10;  // ms
    while (!is_over_) {
      pollfd ready{listener_.descriptor(), POLLIN, 0};
      if (::poll(&ready, 1, kLook) <= 0) continue;
      std::unique_lock lock(mutex_);
      Passage& passage = passages_.emplace_back();
      lock.unlock();
      passage.from = Socket(::accept(listener_.descriptor(), nullptr, nullptr));
      passage.to = dial(target_);
      const int on = 1;
      for (const Socket* socket : {&passage.from, &passage.to})
        ::setsockopt(socket->descriptor(), IPPROTO_TCP, TCP_NODELAY, &on,
                     sizeof(on));
      // The hello: docs/wire.md has its sizes.
      constexpr size_t kProof = 32, kVerdict = 96;
      const std::string greeting = read_exactly(passage.from, Greeting::kBytes);
      const auto read = Greeting::read(greeting);
      if (!read.ok() || !write_all(passage.to, greeting)) continue;
      const Role role = read->role;
      lock.lock();
      passage.role = role;
      passage.threads = {std::thread([this, &passage, role] {
                           pass(passage, passage.from, passage.to, {kProof},
                                role);
                         }),
                         std::thread([this, &passage, role] {
                           pass(passage, passage.to, passage.from,
                                {Greeting::kBytes, kVerdict}, role);
                         })};
    }
  }

  // The rest of the hello, and frames.
  void pass(const Passage& passage, const Socket& from, const Socket& to,
            const std::vector<size_t>& hello, Role role) {
    for (const size_t size : hello) write_all(to, read_exactly(from, size));
    for (;;) {
      const std::string header = read_exactly(from, kFrameHeader);
      if (header.size() < kFrameHeader) break;
      constexpr size_t kLengthAt = 4;
      uint32_t length = 0;
      std::memcpy(&length, header.data() + kLengthAt, sizeof(length));
      const auto kind = FrameKind(uint8_t(header[0]));
      const std::string body = read_exactly(from, length);
      if (body.size() < length) break;
      traffic_.add(role, kind, body);
      if (!write_all(to, header + body)) break;
    }
    if (!passage.is_cut) passage.close();
  }

  const uint16_t target_;
  TapTraffic& traffic_;
  const Socket listener_;
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;             // guards the list and the roles
  std::list<Passage> passages_;  // the rest is the acceptor's while it runs
  std::thread acceptor_;
};

}  // namespace tagflow::net
