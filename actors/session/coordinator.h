// Coordinator: threads that work together and end together, such as those that
// fill the queues of a program beside the one that trains.
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

// Thread-safe but for its end. For one use: a stop is for ever.
class Coordinator {
 public:
  Coordinator();
  // Requests a stop and waits for the threads, however long they take.
  // REQUIRES: this is none of them.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Runs `body` on a thread of its own. An error that it returns, or what it
  // throws, requests a stop with that reason; if it succeeds, the others go on.
  // `name` is for messages. FailedPrecondition after a stop was requested;
  // ResourceExhausted where there is no thread to be had.
  Status start(std::string name, std::function<Status()> body);

  // Asks all threads to end. The reason of the first request counts: an error
  // is what join() returns, but OutOfRange and Cancelled, as well as OK, are
  // how work usually ends.
  void request_stop(Status reason = {});
  // To be asked often by what runs on the threads.
  bool should_stop() const;
  // Waits for a request; false where there was none within that time.
  bool wait_for_stop(std::chrono::nanoseconds timeout) const;
  // Calls `hook` when a stop is requested, on the thread that requests it, or
  // at once where that has happened: so that what waits for something else
  // hears of it. It must not throw, block, or call the coordinator.
  void on_stop(std::function<void()> hook);

  // Waits for the end of all threads: as long as they take, until a stop is
  // requested, and then for the grace at most. Returns the reason of the stop
  // where that is an error; DeadlineExceeded, with their names, where threads
  // still run. FailedPrecondition on one of them, which cannot wait for itself.
  Status join(std::chrono::nanoseconds grace = std::chrono::minutes(2));

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace tagflow::actors
