// BaspFilter: which messages of a peer reach CAF.
#pragma once

#include <caf/node_id.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "graph/status.h"

namespace tagflow::net {

class Reader;

// Note [What reaches CAF]
// BASP is what CAF's nodes say to each other. CAF's parser trusts its bytes: a
// header without a payload, the wrong atom or a list without an end can end the
// process, and any type that CAF knows may be in a message. So a scribe gives
// CAF whole messages only, which a filter of ours has read from end to end:
//
//   handshake   once from the acceptor; from the connector once, and once more
//               as CAF repeats it. Its node is the one of the greeting.
//   direct      from the one actor of the peer to the one actor of this process
//               that control connections are for, with the contents of
//               net/control/actors.h and no others: so no peer can send what an
//               actor says to itself.
//   monitor,    about these two actors.
//   down
//
// A message to an actor by its name is dropped: CAF looks for its spawn server
// so, and nobody starts actors here from afar. All else is an error, which ends
// the connection.

// Of one connection. Thread-compatible.
class BaspFilter {
 public:
  struct Options {
    bool is_connector = false;  // whether this side is
    caf::node_id node;          // of this process
    uint64_t peer_node = 0;     // of the peer: ControlSystem::hash_of() its id
    uint64_t actor = 0;         // the id of the actor of this process
  };
  static constexpr size_t kHeader = 32;  // bytes

  explicit BaspFilter(Options options) : options_(std::move(options)) {}

  // How many bytes follow the header. DataLoss for what is no header, or if it
  // names more than kLongestControl and a little.
  // REQUIRES: header.size() == kHeader
  static Result<size_t> payload_size(std::string_view header);
  // Whether CAF gets the message; DataLoss for what no peer of ours says now.
  // REQUIRES: payload_size(header) was payload.size()
  Result<bool> take(std::string_view header, std::string_view payload);

 private:
  struct Header;

  void read_handshake(const Header& header, Reader& reader);
  void read_direct(const Header& header, Reader& reader);
  void read_nodes(Reader& reader) const;
  void read_peer_node(Reader& reader) const;

  const Options options_;
  int handshakes_ = 0;
  uint64_t peer_actor_ = 0;  // 0: not known yet
};

}  // namespace tagflow::net
