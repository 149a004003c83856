// TLS: what a process shows of itself, and the sessions of its connections.
#pragma once

#include <sys/uio.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::net {

// Note [Certificates and the hello]
// Every connection of a cluster with certificates begins with a handshake of
// TLS 1.3, in which both sides show one of the cluster's authority. All that
// follows, from the hello on, is inside. The secret is still asked for: an
// authority may serve several clusters, and the certificate alone would let in
// whoever it has ever named. The two vouch for the same connection, since the
// proof of the hello covers the channel binding of RFC 9266: what somebody
// between the two sides passes on from another session is no proof in this one.
//
// A certificate names a process by a URI, "tagflow://CLUSTER/JOB/TASK", or
// "tagflow://CLUSTER/master" for whoever asks, and each side compares it with
// the greeting. If it names hosts too, connectors compare what they have
// dialled. So a worker cannot pass for another one, nor for a master.
//
// The small link writes on the threads of its senders while the io thread
// reads, so a session has a lock. A session of OpenSSL does not wait for the
// socket to take what it has encrypted: it is kept here, and the last byte of
// what was given counts as written only when the socket has all of it.

// Texts in PEM.
struct TlsTexts {
  std::string ca;           // the certificates of authorities
  std::string certificate;  // of this process, and those between
  std::string key;
};

// The name that the certificate of a task has; with an empty job, that of a
// master. Thread-safe.
std::string certified_name(std::string_view cluster, std::string_view job,
                           uint32_t task);

// What the handshake of a connection has shown.
struct TlsPeer {
  std::string binding;             // of the channel
  std::vector<std::string> names;  // the URIs of the peer's certificate
};

// FailedPrecondition: one side speaks with TLS, and the other without.
// Thread-safe.
Status other_kind(bool has_tls, std::string_view who);

// One side of a connection, over a socket that does not wait. Thread-safe.
class TlsSession {
 public:
  enum class Side { kAcceptor, kConnector };
  enum class Wants { kNothing, kRead, kWrite };

  struct State;
  explicit TlsSession(std::unique_ptr<State> state);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Goes on with the handshake, until it has to wait, or is over. Errors say
  // why the peer is not trusted, or does not trust this process: Unavailable
  // for what time or a new certificate mends, else Unauthenticated, or
  // FailedPrecondition if the peer does not speak TLS 1.3.
  Result<Wants> shake(std::string_view who);
  // REQUIRES: the handshake is over.
  Result<TlsPeer> peer() const;

  // As those of net/link/system_io.h. After a write of fewer bytes than it was
  // given, the next one begins with the first byte that is left.
  Result<size_t> write_some(std::span<iovec> from, std::string_view who);
  Result<std::optional<size_t>> read_some(std::span<iovec> to,
                                          std::string_view who);
  // Whether bytes of the peer are here, so that the socket need not be readable
  // again for a read.
  bool has_unread() const;

 private:
  const std::unique_ptr<State> state_;
};

// Those of the session, or those of net/link/system_io.h on the socket if there
// is none.
Result<size_t> write_some(TlsSession* tls, int socket, std::span<iovec> from,
                          std::string_view who);
Result<std::optional<size_t>> read_some(TlsSession* tls, int socket,
                                        std::span<iovec> to,
                                        std::string_view who);

// The certificates of a process. Thread-safe.
class Tls {
 public:
  // The texts if they have changed since the last call; nothing if they have
  // not, or cannot be read. Called by one thread at a time.
  using Changes = std::function<std::optional<TlsTexts>()>;

  // Asked before each session, if there are changes. InvalidArgument naming the
  // text that is none, and if key and certificate are not a pair.
  static Result<std::shared_ptr<Tls>> make(const TlsTexts& texts,
                                           Changes changes = {});
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // FailedPrecondition if the certificate of this process does not have the
  // name, or is not valid now.
  Status check_own(std::string_view name) const;
  // The cluster whose task this is by the certificate of this process, or, with
  // an empty job, whose master; the first one if it names several. Nothing if
  // it names none.
  std::optional<std::string> cluster_of(std::string_view job,
                                        uint32_t task) const;
  // A session over a socket, which outlives it. `host` is what a connector has
  // dialled. A change that is not sound is ignored: it may be half done.
  Result<std::shared_ptr<TlsSession>> start(int socket, TlsSession::Side side,
                                            const std::string& host = {});

 private:
  struct Context;
  Tls(std::shared_ptr<Context> context, Changes changes);

  mutable std::mutex mutex_;  // guards the below
  std::shared_ptr<Context> context_;
  Changes changes_;
};

}  // namespace tagflow::net
