// Front: the port of a worker that ends its hellos in a phase of the test's
// choice, as a worker does that is killed then.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "net/link/hello.h"
#include "net/link/system_io.h"
#include "net/link/tls.h"
#include "tests/net/link/loopback.h"

namespace tagflow::net {

// Where a worker is in a hello.
enum class HelloPhase : uint8_t {
  kAccepted,      // the connection
  kAddressed,     // the first bytes have come: a greeting, or those of TLS
  kGreeted,       // it has taken the greeting
  kHalfAnswered,  // half of its own greeting is sent
  kAnswered,      // all of it is sent
  kProofCame,     // the proof is there, and not read
  kProofTaken,    // the verdict is next
  kHalfVerdict,   // half of that is sent
};
inline constexpr std::array<HelloPhase, 8> kHelloPhases = {
    HelloPhase::kAccepted,     HelloPhase::kAddressed,  HelloPhase::kGreeted,
    HelloPhase::kHalfAnswered, HelloPhase::kAnswered,   HelloPhase::kProofCame,
    HelloPhase::kProofTaken,   HelloPhase::kHalfVerdict};

// Passes connections on to a worker, or ends them itself. Its port is held as
// long as it lives. Thread-safe.
class Front {
 public:
  // `identity`: that of a worker, with which it says hello itself.
  explicit Front(Identity identity)
      : identity_(std::move(identity)), listener_(listen_at_a_port()) {
    acceptor_ = std::thread([this] { accept(); });
  }
  ~Front() {
    is_over_ = true;
    acceptor_.join();
    for (Passage& passage : passages_) passage.close();
    for (Passage& passage : passages_)
      for (std::thread& thread : passage.threads) thread.join();
  }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  uint16_t port() const { return port_of(listener_.descriptor()); }
  // From now on, connections are passed on to that port of this machine.
  void pass_to(uint16_t target) {
    const std::lock_guard lock(mutex_);
    target_ = target;
    passes_ = kAll;
  }
  // The next `passed` ones are passed on, and then `ended` ones are ended.
  void end_in(HelloPhase phase, int passed, int ended = kAll) {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
    passes_ = passed;
    ends_ = ended;
  }
  // Ends those that were passed on.
  void cut() {
    const std::lock_guard lock(mutex_);
    for (const Passage& passage : passages_) passage.close();
  }

 private:
  static constexpr int kAll = 1 << 30;

  struct Passage {
    Socket from, to;
    std::array<std::thread, 2> threads;
    void close() const {
      ::shutdown(from.descriptor(), SHUT_RDWR);
      ::shutdown(to.descriptor(), SHUT_RDWR);
    }
  };

  // Whether something came; false at the end of this.
  bool wait_for(const Socket& socket) const {
    constexpr int kLook = 10;  // ms
    pollfd ready{socket.descriptor(), POLLIN, 0};
    while (!is_over_)
      if (::poll(&ready, 1, kLook) > 0) return true;
    return false;
  }

  void accept() {
    while (wait_for(listener_)) {
      Socket socket(::accept(listener_.descriptor(), nullptr, nullptr));
      std::unique_lock lock(mutex_);
      if (passes_ > 0) {
        --passes_;
        Socket target(::socket(AF_INET, SOCK_STREAM, 0));
        const sockaddr_in address = loopback_address(target_);
        if (::connect(target.descriptor(),
                      reinterpret_cast<const sockaddr*>(&address),
                      sizeof(address)) != 0)
          continue;
        Passage& passage = passages_.emplace_back();
        passage.from = std::move(socket);
        passage.to = std::move(target);
        passage.threads = {
            std::thread([&] { pass(passage, passage.from, passage.to); }),
            std::thread([&] { pass(passage, passage.to, passage.from); })};
        continue;
      }
      const HelloPhase phase = phase_;
      if (--ends_ == 0) passes_ = kAll;
      lock.unlock();
      speak(socket, phase);
    }
  }

  static void pass(const Passage& passage, const Socket& from,
                   const Socket& to) {
    std::array<char, 1 << 16> bytes;
    for (;;) {
      const ssize_t count =
          ::recv(from.descriptor(), bytes.data(), bytes.size(), 0);
      if (count <= 0 || !write_all(to, {bytes.data(), size_t(count)})) break;
    }
    passage.close();
  }

  // Says hello up to that phase.
  void speak(const Socket& socket, HelloPhase phase) const {
    if (phase == HelloPhase::kAccepted) return;
    if (!wait_for(socket) || phase == HelloPhase::kAddressed) return;
    auto hello = Hello::acceptor(identity_,
                                 [](const Greeting&) -> Status { return {}; });
    if (!hello.ok() || !prepare_socket(socket).ok()) return;
    std::shared_ptr<TlsSession> tls;
    if (identity_.tls != nullptr) {
      tls = shake(socket);
      if (tls == nullptr) return;
      auto peer = tls->peer();
      if (!peer.ok()) return;
      hello->bind(*std::move(peer));
    }
    const auto answer = hello->take(read(socket, tls.get(), hello->wanted()));
    if (!answer.ok() || phase == HelloPhase::kGreeted) return;
    if (phase == HelloPhase::kHalfAnswered)
      return write(socket, tls.get(), answer->substr(0, answer->size() / 2));
    write(socket, tls.get(), *answer);
    if (phase == HelloPhase::kAnswered) return;
    if (!wait_for(socket) || phase == HelloPhase::kProofCame) return;
    const auto verdict = hello->take(read(socket, tls.get(), hello->wanted()));
    if (!verdict.ok() || phase == HelloPhase::kProofTaken) return;
    write(socket, tls.get(), verdict->substr(0, verdict->size() / 2));
  }

  // Null if the peer has gone.
  std::shared_ptr<TlsSession> shake(const Socket& socket) const {
    auto session =
        identity_.tls->start(socket.descriptor(), TlsSession::Side::kAcceptor);
    if (!session.ok()) return nullptr;
    for (;;) {
      const auto wants = (*session)->shake("the master");
      if (!wants.ok()) return nullptr;
      if (*wants == TlsSession::Wants::kNothing) return *session;
      if (*wants == TlsSession::Wants::kRead && !wait_for(socket))
        return nullptr;
    }
  }

  // The next bytes, or zeros if the peer has gone.
  std::string read(const Socket& socket, TlsSession* tls, size_t size) const {
    std::string bytes(size, '\0');
    for (size_t count = 0; count < size;) {
      iovec rest = part(std::span<char>(bytes).subspan(count));
      const auto some =
          read_some(tls, socket.descriptor(), {&rest, 1}, "the master");
      if (!some.ok()) break;
      if (*some) {
        count += **some;
      } else if (!wait_for(socket)) {
        break;
      }
    }
    return bytes;
  }

  // What is sent fits into the socket.
  static void write(const Socket& socket, TlsSession* tls,
                    std::string_view bytes) {
    iovec all = part(bytes);
    static_cast<void>(
        write_some(tls, socket.descriptor(), {&all, 1}, "the master"));
  }

  const Identity identity_;
  const Socket listener_;
  std::atomic<bool> is_over_{false};
  std::mutex mutex_;  // guards the below
  uint16_t target_ = 0;
  HelloPhase phase_ = HelloPhase::kAccepted;
  int passes_ = 0, ends_ = kAll;
  std::list<Passage> passages_;
  std::thread acceptor_;
};

}  // namespace tagflow::net
