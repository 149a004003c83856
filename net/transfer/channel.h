// Channel: the small link and the bulk link between two processes.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "actors/runtime/reaper.h"
#include "net/link/bulk_link.h"
#include "net/link/small_link.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// The two threads of a process: see IoThread.
struct IoThreads {
  static Result<IoThreads> start();
  // Whether the caller is one of them.
  bool is_current() const { return small->is_current() || bulk->is_current(); }
  std::unique_ptr<IoThread> small, bulk;
};

// Shares an object with a member `threads`. The last step of a session may end
// on one of these, and with it the object: then another thread ends them.
template <class T>
std::shared_ptr<T> share_with_threads(T* object) {
  return std::shared_ptr<T>(object, [](T* last) {
    if (last->threads.is_current()) {
      actors::destroy_elsewhere([last] { delete last; });
    } else {
      delete last;
    }
  });
}

// What the process at the other end, "/job:worker/task:1", is called in errors
// is its name. If one link is lost, the channel is: it is told once, and the
// other link ends, too. Thread-safe.
class Channel {
 public:
  struct Handlers {
    // On the small link's thread.
    std::function<Status(const Frame&)> on_frame;
    // On the bulk link's.
    std::function<Result<BulkLink::Destination>(const Begin&)> on_begin;
    std::function<void(ObjectId, const Status&)> on_end;
    // On the bulk link's, as BulkLink's; may be empty.
    std::function<void(ObjectId, const Status&)> on_sent;
    // On either, or by close(); called once.
    std::function<void(const Status&)> on_lost;
    // On the small link's, by its Pongs; may be empty.
    std::function<void(const Pong&)> on_pong;
  };

  Channel(const IoThreads& threads, Socket small, Socket bulk,
          std::string name);
  // Calls stop(). REQUIRES: as for it.
  ~Channel() { stop(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void start(Handlers handlers);
  // No handler is called any more when this returns. Those that run until then
  // may use the channel: so an owner calls this before it takes away the
  // pointer by which its handlers find it. REQUIRES: the thread is not one of
  // the links', so that these do not wait for each other.
  void stop();
  const std::string& name() const { return name_; }
  // Loses it, for a reason of this end.
  void close(const Status& reason) { lose(reason); }
  // Why it is lost, if it is.
  Status lost() const;

  // An error if the message cannot be a frame. A lost link takes it, too.
  template <class Message>
  Status send(const Message& message) {
    TAGFLOW_ASSIGN(std::string frame, frame_of(message));
    small_.send(frame);
    return {};
  }
  void send(BulkLink::Object object) { bulk_.send(std::move(object)); }
  void drop(ObjectId object) { bulk_.drop(object); }
  // Of both links; the round trip is the small one's.
  Traffic traffic() const;
  // A number that no object of this end has had.
  ObjectId next_object() { return ObjectId(next_object_.fetch_add(1)); }

 private:
  void lose(const Status& status);

  const std::string name_;
  std::atomic<uint64_t> next_object_{1};
  std::function<void(const Status&)> on_lost_;
  mutable std::mutex mutex_;  // guards the below
  Status lost_;
  // A link that is lost ends the other one, which may go at the same time.
  std::array<std::function<void(const Status&)>, 2> closers_;
  SmallLink small_;
  BulkLink bulk_;
};

}  // namespace tagflow::net
