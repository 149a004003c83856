// Hello: what the two sides of a new connection prove to each other, and how
// one refuses the other. docs/wire.md has its frames.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "graph/status.h"
#include "net/wire/greeting.h"

namespace tagflow::net {

class Tls;       // net/link/tls.h
struct TlsPeer;  // there

// Who this process is, for all of its connections.
struct Identity {
  Role role = Role::kWorker;
  Task task;
  uint64_t incarnation = 0;  // by draw_incarnation() in net/link/crypto.h
  uint16_t port = 0;         // on which it listens; 0: it does not
  uint64_t node = 0;         // a hash of its CAF node's id; 0: none
  ClusterId cluster{};
  Digest digest{};     // of its build
  std::string secret;  // of the cluster
  // Null: connections are without TLS.
  std::shared_ptr<Tls> tls;
  std::string cluster_name;  // in certificates; not used without TLS
};

// One side of one hello, without a socket and without a clock: frames go in,
// frames come out.
//
//   connector                      acceptor
//     first() -- greeting ---------> take()
//     take() <------------ greeting --
//      `-------- proof ------------> take(), which asks `admit`
//     take() <------------- verdict --
//
// The connector proves first, so a stranger gets nothing that it could use to
// try secrets, and no reason: a false proof has a verdict that proves nothing.
// So a connection that ends without a verdict says nothing about the secret.
// Both check the other's greeting, each with the same result: so the connector
// learns what differs even if it has another secret.
//
// Errors are FailedPrecondition for what does not fit together, NotFound if the
// acceptor has another incarnation than the wanted one, Aborted for what the
// acceptor refuses for reasons of its own, Unauthenticated for a wrong secret,
// and DataLoss for what is no hello. Inside TLS, see Note [Certificates and the
// hello] in net/link/tls.h. Thread-compatible.
class Hello {
 public:
  // Whether a peer that has proved itself is welcome; the message of the error
  // is the reason that it is told, of which 64 bytes are sent.
  using Admit = std::function<Status(const Greeting& peer)>;

  // `wanted_incarnation` is what the acceptor should have; 0: any.
  static Result<Hello> connector(const Identity& identity, Purpose purpose,
                                 uint64_t wanted_incarnation = 0);
  static Result<Hello> acceptor(const Identity& identity, Admit admit);

  // The frames go inside TLS: the proofs cover its channel, and the greeting of
  // the peer is compared with its certificate. REQUIRES: no frame was taken
  void bind(TlsPeer peer);
  // What is sent before anything is received; empty for the acceptor.
  const std::string& first() const { return first_; }
  // Bytes of the frame that take() expects next; 0 if the hello is over.
  size_t wanted() const;
  // Takes the peer's next frame; returns what is sent then, which may be empty.
  // After an error the connection is closed, with nothing sent.
  // REQUIRES: frame.size() == wanted(), which is not 0
  Result<std::string> take(std::string_view frame);

  // Of the acceptor, when the hello is over: why the peer was refused, which
  // it is told by the last frame; OK if it is welcome.
  const Status& refusal() const { return refusal_; }
  // Proven when the hello is over without a refusal.
  const Greeting& peer() const { return peer_; }

 private:
  enum class Wants { kGreeting, kProof, kVerdict, kNothing };

  Hello(const Identity& identity, bool is_connector, Admit admit);
  // Whether the certificate is that of the process in the greeting.
  Status check_certificate() const;
  // Draws the nonce, and writes `greeting_`.
  Status greet();
  Result<std::string> take_greeting(std::string_view frame);
  Result<std::string> take_proof(std::string_view frame);
  Status take_verdict(std::string_view frame);
  // Whether the processes belong together.
  Status check_peer() const;
  // The HMAC of a side over both greetings and `more`.
  Result<Digest> proof_of(std::string_view side, std::string_view more) const;

  std::string secret_;
  std::string cluster_;                 // its name
  std::shared_ptr<const TlsPeer> tls_;  // null: without TLS
  Admit admit_;
  bool is_connector_;
  Wants wants_ = Wants::kGreeting;
  Greeting mine_;
  Greeting peer_;
  std::string greeting_;  // the bytes of `mine_`
  std::string first_;
  std::string greetings_;  // both, the connector's first
  Status refusal_;
};

}  // namespace tagflow::net
