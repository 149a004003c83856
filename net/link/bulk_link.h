// BulkLink: objects of any size, both ways over one connection.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/link/bulk_input.h"
#include "net/link/bulk_output.h"
#include "net/link/io_thread.h"
#include "net/link/silence.h"
#include "net/link/socket.h"
#include "net/link/traffic.h"

namespace tagflow::net {

// A life: made, started, lost, gone, as a SmallLink's. Objects travel in chunks
// and take turns, so a short one does not wait for a long one. Nothing is
// copied: a chunk is read from the socket into the buffer of its receiver, and
// written from that of its sender. Its checksum is made while it is in cache.
//
// Thread-safe. Handlers are called on the io thread, one at a time, and all of
// the work is done there.
class BulkLink {
 public:
  using Destination = BulkInput::Destination;
  using Object = BulkOutput::Object;
  struct Handlers {
    // An object comes: begin.bytes is how many bytes the destination has. After
    // an error the bytes that come are dropped, and on_end is not called. Not a
    // byte was checked: so a limit of what a peer may ask for belongs here.
    std::function<Result<Destination>(const Begin&)> on_begin;
    // An accepted object is there, or will not come. Called once for each,
    // unless drop() was. Its owner was released.
    std::function<void(ObjectId, const Status&)> on_end;
    // An object of send() is with the system, or will not be. Called once for
    // each, but not if the link is destroyed before. Its owner was released.
    std::function<void(ObjectId, const Status&)> on_sent;
    // Called once. Before it, on_end and on_sent are called for what is open.
    std::function<void(const Status&)> on_lost;
  };
  struct Options {
    std::string peer = "the peer";  // in errors
    LifeSigns life;
  };

  // The io thread must outlive the link. May throw std::bad_alloc.
  BulkLink(IoThread& thread, Socket socket, Options options);
  // Calls stop(); a handler may destroy its own link.
  ~BulkLink();
  BulkLink(const BulkLink&) = delete;
  BulkLink& operator=(const BulkLink&) = delete;

  // Begins to receive and to send. REQUIRES: it was not called before.
  void start(Handlers handlers);
  // No handler is called, and no buffer is used, any more when this returns; it
  // waits for a handler that runs. What is sent from then on is dropped.
  void stop();
  // Loses the link, for a reason of its owner, as if it had ended by itself.
  // May be called after the link has gone, as long as the io thread is there.
  std::function<void(const Status&)> closer() const;
  // Sends an object; on_sent has the answer. REQUIRES: its id is not that of
  // another object that is being sent, and bytes.size() == begin.bytes.
  void send(Object object);
  // Gives up an object of send(), if it is not with the system yet. The
  // receiver is told the cause. REQUIRES: !cause.ok()
  void cancel(ObjectId object, Status cause);
  // Drops the rest of an object that comes, if there is one.
  void drop(ObjectId object);
  // Zeros when the link is lost.
  Traffic traffic() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tagflow::net
