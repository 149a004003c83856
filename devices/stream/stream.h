// Stream: a thread that runs tasks in order, and events to wait for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tagflow::devices {

class Stream;

// A point in a stream: passed when all that was enqueued there before it is
// done. The default one is passed always. Not to be used after its stream.
class StreamEvent {
 public:
  StreamEvent() = default;
  // Blocks until then: for the threads of other streams, never for an actor.
  // Thread-safe.
  void wait() const;

 private:
  friend class Stream;
  StreamEvent(Stream* stream, uint64_t ticket)
      : stream_(stream), ticket_(ticket) {}

  Stream* stream_ = nullptr;
  uint64_t ticket_ = 0;  // how many tasks have ended then
};

// Life cycle: running; stopping, when what is queued is abandoned in order; its
// thread has ended, when what comes is abandoned by who brings it.
class Stream {
 public:
  enum class Turn : uint8_t {
    kRun,
    kAbandon,  // the stream is stopping: answer only
  };
  // Called once, with what is to be done. Must not throw.
  using Task = std::function<void(Turn)>;

  Stream();
  // Stops and joins. REQUIRES: not called on the stream's own thread.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // After all that was enqueued before. The event passes when the task has
  // ended and what it held is let go of. Never blocks. Thread-safe.
  StreamEvent enqueue(Task task);

  // Begins to abandon tasks; the one that runs is not disturbed. Thread-safe.
  void stop();
  // Waits for the thread's end. REQUIRES: stop() was called; one caller.
  void join();

 private:
  friend class StreamEvent;

  void work();
  // Until there is something to do: spins a while, since a sleeping thread
  // takes long to wake, then sleeps.
  void rest(std::unique_lock<std::mutex>& lock);
  bool has_ended(uint64_t ticket) const {
    return ended_.load(std::memory_order_acquire) >= ticket;
  }
  void wait_for(uint64_t ticket);

  std::mutex mutex_;
  std::condition_variable wakes_;   // the thread
  std::condition_variable passes_;  // who waits for an event
  std::deque<Task> tasks_;
  bool asleep_ = false;
  bool stopping_ = false;
  bool gone_ = false;  // the thread takes no task any more
  int waiters_ = 0;
  // Tasks so far. Changed under the mutex, read without it by who spins.
  std::atomic<uint64_t> enqueued_{0};
  std::atomic<uint64_t> ended_{0};
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tagflow::devices
