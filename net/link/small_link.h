// SmallLink: frames that must not wait, both ways over one connection.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/link/io_thread.h"
#include "net/link/silence.h"
#include "net/link/socket.h"
#include "net/link/traffic.h"
#include "net/wire/frame.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// What became of a frame that a link was given.
enum class Sent {
  kWritten,    // the system has all of it
  kQueued,     // the system takes the rest later
  kOverLimit,  // as kQueued, and so much waits that the sender should pause
  kLost,       // the link has ended, and the frame with it
};

// A life: made, started, lost, gone. Frames may be sent from the beginning on.
// The link is lost once, for good: if the peer closes it, says Bye, breaks the
// format or is silent, if the system reports an error, or if a handler does.
//
// Frames arrive in the order in which they were sent, by whichever threads. A
// thread that sends writes to the socket itself, if nothing waits before its
// frame: so a frame costs no change of threads. Pings are answered here, on the
// link's thread, which therefore must not be busy for longer than `life`.
//
// Thread-safe; handlers are called on the io thread, one at a time.
class SmallLink {
 public:
  struct Handlers {
    // A frame, but Ping, Pong and Bye; it lives until this returns. An error
    // loses the link.
    std::function<Status(const Frame&)> on_frame;
    // Called once, as the last one, but not if the link is destroyed before.
    std::function<void(const Status&)> on_lost;
    // Called when nothing waits any more, after a kOverLimit; may be empty.
    std::function<void()> on_room;
    // A Pong; may be empty.
    std::function<void(const Pong&)> on_pong;
  };
  struct Options {
    std::string peer = "the peer";  // in errors
    LifeSigns life;
    // Bytes that may wait until senders should pause. The link is lost at
    // kMostLimits times as many.
    size_t queue_limit = size_t{4} << 20;
  };
  static constexpr size_t kMostLimits = 16;

  // The io thread must outlive the link. May throw std::bad_alloc.
  SmallLink(IoThread& thread, Socket socket, Options options);
  // Calls stop(); a handler may destroy its own link.
  ~SmallLink();
  SmallLink(const SmallLink&) = delete;
  SmallLink& operator=(const SmallLink&) = delete;

  // Begins to receive. REQUIRES: it was not called before.
  void start(Handlers handlers);
  // No handler is called any more when this returns; it waits for one that
  // runs. What is sent from then on is dropped.
  void stop();
  // Sends a frame of frame_of(), whose header it completes. Takes the memory of
  // the frame if some of it has to wait, and otherwise leaves it to the caller.
  Sent send(std::string& frame);
  // Loses the link, for a reason of its owner, as if it had ended by itself.
  // May be called after the link has gone, as long as the io thread is there.
  std::function<void(const Status&)> closer() const;
  // Bytes that wait.
  size_t queued() const;
  // Zeros when the link is lost.
  Traffic traffic() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tagflow::net
