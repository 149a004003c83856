// LinkedPort: the transfers of one part with its peers, over their sessions.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/runtime/peer_rendezvous.h"
#include "graph/shape.h"
#include "net/protocol/transfers.h"
#include "net/transfer/parts.h"
#include "net/transfer/peer_session.h"

namespace tagflow::net {

// A transfer that crosses tasks.
struct Route {
  PeerSession* peer = nullptr;
  // Its number for both: the index among the transfers that go this way between
  // the two, by their names.
  uint32_t number = 0;
  std::string tensor;  // "x:0", in errors
  // What a Recv expects.
  DataType dtype = DataType::kInvalid;
  PartialShape shape;
};
using Routes = std::unordered_map<std::string, Route>;  // by transfer

// Of one context of an executable: for one step at a time. The rendezvous calls
// what a PeerPort has; parts call the rest, with a unit of the step.
class LinkedPort final : public actors::PeerPort {
 public:
  // All outlive it, the sessions at least until the last end(). REQUIRES: each
  // transfer with one end here has a route.
  LinkedPort(Parts& parts, std::shared_ptr<const Routes> routes,
             const std::vector<actors::Transfer>& transfers);

  void begin(actors::Step& step, actors::BatchStore& store) override;
  void end() override;
  void send(uint32_t transfer, const devices::Tag& tag, bool is_dead,
            Tensor value, const actors::TransferEnd& send,
            actors::TransferAnswers& answers) override;
  void receive(uint32_t transfer, const devices::Tag& tag,
               const actors::TransferEnd& recv,
               actors::TransferAnswers& answers) override;
  void flush() override;

  // An error is the peer's, and ends the session; a value that is not as
  // expected is an error of the step.
  Status on_tokens(PeerSession& from, Tokens tokens,
                   actors::TransferAnswers& answers);
  Status on_pull(PeerSession& from, const Pull& pull,
                 actors::TransferAnswers& answers);
  // The answer to a pull. An error is one of the step.
  Status on_pulled(PeerSession& from, const TransferKey& key,
                   Result<Tensor> tensor, actors::TransferAnswers& answers);
  bool uses(const PeerSession& session) const;
  // Of the step in hand: Note [Deadlock] in net/protocol/deadlock.h. A frame of
  // tokens is one message.
  MessageCounts counts() const { return {sent_.load(), received_.load()}; }

 private:
  // An inline token that no Recv has consumed.
  struct Arrived {
    bool is_dead = false;
    Tensor value;
    PeerSession* from = nullptr;
  };
  // An announced token, and its Send.
  struct Held {
    Tensor value;
    actors::TransferEnd send;
  };
  // One peer: numbers on the wire, as numbers here.
  struct Peer {
    PeerSession* session = nullptr;
    std::vector<uint32_t> sent, received;
    Tokens pending;    // to be sent by flush()
    size_t bytes = 0;  // of it, about
  };

  Peer& peer_of(const PeerSession& session);
  void push(Peer& peer, const devices::Tag& tag, Tokens::Entry entry,
            size_t bytes);
  void flush(Peer& peer);
  // InvalidArgument if the value is not what the Recv expects.
  static Status check(const Route& route, DataType dtype, const Shape& shape);
  Status pull(const TransferKey& key);
  static void give(Arrived arrived, const actors::TransferEnd& recv,
                   actors::TransferAnswers& answers);

  Parts& parts_;
  const std::shared_ptr<const Routes> all_;
  std::vector<const Route*> routes_;  // by transfer; null: both ends are here
  std::vector<Peer> peers_;
  actors::Step* step_ = nullptr;
  uint64_t number_ = 0;  // of the step
  // Changed by owners of a unit of the step.
  std::atomic<uint64_t> sent_{0}, received_{0};

  mutable std::mutex mutex_;  // guards the below
  Inbox<Arrived, actors::TransferEnd> inbox_;
  Outbox<Held> outbox_;
};

}  // namespace tagflow::net
