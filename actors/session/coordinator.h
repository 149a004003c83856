// Coordinator: threads that work together and end together, such as those that
// fill the queues of a program during its training.
//
//   actors::Coordinator threads;
//   Status started = threads.start("reader", [&]() -> Status {
//     while (!threads.should_stop()) TAGFLOW_RETURN_IF_ERROR(read_some());
//     return {};
//   });
//   ...                                   // the main loop
//   threads.request_stop();
//   Status status = threads.join();       // the first error
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "graph/status.h"

namespace tagflow::actors {

// Thread-safe, except for its destruction. Can be used once: a stop is
// permanent.
class Coordinator {
 public:
  Coordinator();
  // Requests a stop and waits for the threads without a time limit. REQUIRES:
  // the calling thread is none of them.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Runs `body` on a thread of its own. If it returns an error or throws, a
  // stop is requested with that reason; if it succeeds, the other threads go
  // on. `name` is for messages. FailedPrecondition after a stop was requested;
  // ResourceExhausted if no thread can be created.
  Status start(std::string name, std::function<Status()> body);

  // Asks all threads to end. The reason of the first request counts: join()
  // returns it if it is an error. OutOfRange, Cancelled and OK are not errors
  // here, since work usually ends with them.
  void request_stop(Status reason = {});
  // The threads should check this often.
  bool should_stop() const;
  // Waits for a request; false if there was none within that time.
  bool wait_for_stop(std::chrono::nanoseconds timeout) const;
  // Calls `hook` when a stop is requested, on the requesting thread, or at once
  // if it was requested before. So a hook can end other waits of the threads.
  // It must not throw, block, or call the coordinator.
  void on_stop(std::function<void()> hook);

  // Waits for the end of all threads: without a limit until a stop is
  // requested, and then for the grace period at most. Returns the reason of the
  // stop if that is an error; DeadlineExceeded, with their names, if threads
  // still run. FailedPrecondition on one of the threads, which cannot wait for
  // itself.
  Status join(std::chrono::nanoseconds grace = std::chrono::minutes(2));

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace tagflow::actors
