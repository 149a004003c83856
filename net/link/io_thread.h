// IoThread: a thread that waits for sockets and timers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "graph/status.h"

namespace boost::asio {
class io_context;
}

namespace tagflow::net {

// A process has two of them. All handlers of a link, listener or connector run
// on the thread that it was given:
//
//   small  small links. Their handlers may lend the thread to the engine, for
//          200 us at most.
//   bulk   bulk links, listeners and connectors. It is never lent.
//
// Thread-safe.
class IoThread {
 public:
  // The thread polls for up to `look` before it sleeps, while its waits are
  // that short; see Note [Looking for messages] in io_thread.cpp.
  // ResourceExhausted if the system gives no thread, or no descriptors.
  static Result<std::unique_ptr<IoThread>> start(
      const std::string& name, std::chrono::nanoseconds look = {});
  // Ends the thread, and what is posted is forgotten. REQUIRES: another thread
  // calls it, and all links, listeners and connectors on it have gone.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // Whether the calling thread is this one.
  bool is_current() const;
  // Has f called on this thread, after what was posted before. f must not
  // throw. May throw std::bad_alloc.
  void post(std::function<void()> f);
  // As post(), after a delay; never, if the thread ends before.
  void post_after(std::chrono::nanoseconds delay, std::function<void()> f);
  // As post(), and returns when f has; on this thread itself, calls it.
  void call(const std::function<void()>& f);

  boost::asio::io_context& context();

 private:
  struct State;
  explicit IoThread(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tagflow::net
