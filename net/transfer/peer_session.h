// PeerSession: a channel between two workers, with its windows and its pulls.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "net/protocol/pull_queue.h"
#include "net/protocol/transfers.h"
#include "net/protocol/window.h"
#include "net/transfer/channel.h"
#include "net/transfer/object_tensor.h"

namespace tagflow::net {

class Parts;

// What an inline token counts in the window, a dead one too; nothing for an
// announced one. Thread-safe.
std::optional<uint64_t> inline_bytes(const Tokens::Entry& entry);

// Life: made, started, lost, gone. It outlives the steps that use it.
// Thread-safe.
class PeerSession {
 public:
  // A pull that is not answered. The key's transfer is the number here.
  struct Pulled {
    uint64_t step = 0;
    TransferKey key;
    std::shared_ptr<TensorInput> input;  // null: the token is dead
  };

  PeerSession(const IoThreads& threads, Socket small, Socket bulk,
              std::string name)
      : channel_(threads, std::move(small), std::move(bulk), std::move(name)) {}
  // What comes is for these parts, which outlive the session. `on_lost` is
  // called once, on a thread of the links.
  void start(Parts& parts, std::function<void(const Status&)> on_lost);

  const std::string& name() const { return channel_.name(); }
  Status lost() const { return channel_.lost(); }
  Traffic traffic() const { return channel_.traffic(); }

  // Whether a token of so many bytes goes inline.
  bool take_window(uint64_t bytes);
  // A Recv has consumed an inline token of so many bytes, or it was dropped.
  void consume(uint64_t bytes);
  Status send(const Tokens& tokens) { return channel_.send(tokens); }
  // The answer to a Pull, and that of a dead token.
  void send(ObjectId object, const Tensor& tensor);
  void send_dead(ObjectId object) {
    channel_.send({{object, ObjectKind::kDead, 0, {}}, {}, nullptr});
  }
  // Pulls what the peer knows as `theirs`, and this side as `key`.
  Status pull(uint64_t step, const TransferKey& key, uint32_t theirs);
  // Loses it, for a reason of this side.
  void close(const Status& reason) { channel_.close(reason); }
  // No handler is called any more when this returns. REQUIRES: the thread is
  // not one of the links'.
  void stop() { channel_.stop(); }
  // Says why this side closes the session next.
  void leave(const std::string& reason) {
    static_cast<void>(channel_.send(Bye{reason}));
  }
  // No answers to pulls of the step are wanted any more.
  void forget(uint64_t step);

 private:
  Status on_frame(Parts& parts, const Frame& frame);
  Status on_tokens(Parts& parts, Tokens tokens);
  Status on_pull(Parts& parts, const Pull& pull);
  void on_sent(Parts& parts, ObjectId object);
  Result<BulkLink::Destination> on_begin(Parts& parts, const Begin& begin);
  void on_end(Parts& parts, ObjectId object, const Status& status);

  std::mutex mutex_;  // guards the below
  SendWindow send_window_{kDefaultWindow};
  ReceiveWindow receive_window_{kDefaultWindow};
  std::unordered_map<uint64_t, Pulled> pulled_;  // by object
  PullQueue pulls_;
  // Destroyed first.
  Channel channel_;
};

}  // namespace tagflow::net
