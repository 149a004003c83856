// Stream: a thread that runs tasks in order, and events to wait for.
#pragma once

#include <atomic>
#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "graph/fault.h"

namespace tagflow::devices {

class Stream;

// A point in a stream: passed when everything enqueued before it is done. The
// default event has always passed. Not to be used after its stream.
class StreamEvent {
 public:
  StreamEvent() = default;
  // Blocks until it has passed: for the threads of other streams, never for an
  // actor. Thread-safe.
  void wait() const;

 private:
  friend class Stream;
  StreamEvent(Stream* stream, uint64_t ticket)
      : stream_(stream), ticket_(ticket) {}

  Stream* stream_ = nullptr;
  uint64_t ticket_ = 0;  // the number of tasks ended by then
};

// Life cycle: running; stopping: queued tasks are abandoned in order; ended:
// the thread has ended, and a caller of enqueue() abandons its task itself.
class Stream {
 public:
  enum class Fate : uint8_t {
    kRun,
    kAbandon,  // the stream is stopping: only answer
  };
  class Task {
   public:
    virtual ~Task() = default;
    // Called once, with the action. Must not throw; if it does, the stream
    // continues.
    virtual void run(Fate fate) = 0;

   private:
    friend class Stream;
    std::unique_ptr<Task> next_;
  };

  Stream();
  // Stops and joins. REQUIRES: not called on the stream's own thread.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Runs the task after all earlier ones. The event passes when the task has
  // ended and was destroyed. Never blocks, and needs no memory. Thread-safe.
  StreamEvent enqueue(std::unique_ptr<Task> task) noexcept;
  // Enqueues a task that calls body(fate). If there is no memory for it,
  // nothing is enqueued, and std::bad_alloc is thrown. Thread-safe.
  template <std::invocable<Fate> Body>
  StreamEvent enqueue(Body body) {
    return enqueue(task(std::move(body)));
  }
  template <class Body>
  static std::unique_ptr<Task> task(Body body) {
    return std::make_unique<TaskOf<Body>>(std::move(body));
  }

  // Begins to abandon tasks; the running one is not disturbed. Thread-safe.
  void stop();
  // Waits for the thread's end. REQUIRES: stop() was called; one caller.
  void join();

 private:
  friend class StreamEvent;
  template <class Body>
  struct TaskOf final : Task {
    explicit TaskOf(Body b) : body(std::move(b)) {}
    void run(Fate fate) override { body(fate); }
    Body body;
  };

  static void run_task(std::unique_ptr<Task> task, Fate fate);
  void work();
  // Waits for work: spins a while, since a sleeping thread takes long to wake,
  // then sleeps.
  void rest(std::unique_lock<std::mutex>& lock);
  bool has_ended(uint64_t ticket) const {
    return ended_.load(std::memory_order_acquire) >= ticket;
  }
  void wait_for(uint64_t ticket);

  std::mutex mutex_;
  std::condition_variable wakes_;   // wakes the thread
  std::condition_variable passes_;  // wakes waiters for an event
  std::unique_ptr<Task> first_;     // the first queued task
  Task* last_ = nullptr;
  bool asleep_ = false;
  bool stopping_ = false;
  bool gone_ = false;  // the thread takes no more tasks
  int waiters_ = 0;
  // Tasks so far. Changed under the mutex, read without it by spinning threads.
  std::atomic<uint64_t> enqueued_{0};
  std::atomic<uint64_t> ended_{0};
  std::thread thread_;  // last: it uses all of the above
};

// A task that calls body(fate, done), which calls `done`. It is made before the
// caller gives up `done`, so that a lack of memory for it can be answered, too.
template <class Done, std::invocable<Stream::Fate, Done&> Body>
class AnswerTask final : public Stream::Task {
 public:
  explicit AnswerTask(Body body) : body_(std::move(body)) {}
  void run(Stream::Fate fate) override {
    after.wait();
    body_(fate, done);
  }

  StreamEvent after;  // waited for first, for every fate
  Done done;

 private:
  Body body_;
};

template <class Done, class Body>
std::unique_ptr<AnswerTask<Done, Body>> answer_task(Body body) {
  return std::make_unique<AnswerTask<Done, Body>>(std::move(body));
}

// Enqueues such a task. If it cannot be made, `done` is called at once with an
// error of `module`.
template <class Done, class Body>
void enqueue_answer(Stream& stream, std::string_view module, Done done,
                    Body body) {
  decltype(answer_task<Done>(std::move(body))) task;
  Status made =
      guarded(module, [&] { task = answer_task<Done>(std::move(body)); });
  if (!made.ok()) return done(std::move(made));
  task->done = std::move(done);
  stream.enqueue(std::move(task));
}

}  // namespace tagflow::devices
