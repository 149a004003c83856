// Scheduler: the workers of an engine, as a module of CAF.
//
// Note [Turns]
// Ready actors and jobs wait in one queue for all workers, first come, first
// served. Urgent ones have a queue of their own, which goes first, except every
// UrgentFirst::kInARow-th time. So each waits at most for one time slice of
// each one before it. To enqueue an engine's actor or job allocates nothing and
// cannot fail: the link of the queue is in the object (Ready). An idle worker
// polls for work for a short time, so that a loop of kernels on several workers
// need not wake them in each iteration; then it sleeps until it is woken. So an
// idle engine uses no CPU time. A worker that polls takes its core from others:
// an engine that shares the cores with those of other processes, which it waits
// for, should not poll.
//
// A worker's *next slot* is for HandOff::kMailbox, where each hop uses the
// scheduler: the receiver of a handler's message goes first, on the same
// worker, during the time slice. Before any long work it is put into the queue.
#pragma once

#include <atomic>
#include <caf/actor_clock.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tagflow::actors {

// A link of the queue. It is part of an actor or a job, which is in the queue
// at most once at a time.
struct Ready {
  explicit Ready(caf::resumable* runs) : work(runs) {}
  caf::resumable* const work;
  Ready* next = nullptr;
  bool urgent = false;
  bool owned = false;  // by the scheduler, for an actor of CAF's own
};

// Chooses one of two queues: the urgent one, except every kInARow-th time, so
// that the other one does not starve.
class UrgentFirst {
 public:
  static constexpr int kInARow = 16;

  bool take_urgent(bool has_urgent, bool has_normal) {
    const bool urgent = has_urgent && (!has_normal || ++in_a_row_ < kInARow);
    if (!urgent) in_a_row_ = 0;
    return urgent;
  }

 private:
  int in_a_row_ = 0;
};

// The base of objects with a link of the queue.
class HasReady {
 public:
  explicit HasReady(caf::resumable* runs) : ready_(runs) {}
  Ready& ready() { return ready_; }

 protected:
  ~HasReady() = default;

 private:
  Ready ready_;
};

// No actor of the engine requests a time-out from CAF.
class NoClock : public caf::actor_clock {
 public:
  void set_ordinary_timeout(time_point, caf::abstract_actor*, caf::atom_value,
                            uint64_t) override {}
  void set_multi_timeout(time_point, caf::abstract_actor*, caf::atom_value,
                         uint64_t) override {}
  void set_request_timeout(time_point, caf::abstract_actor*,
                           caf::message_id) override {}
  void cancel_ordinary_timeout(caf::abstract_actor*, caf::atom_value) override {
  }
  void cancel_request_timeout(caf::abstract_actor*, caf::message_id) override {}
  void cancel_timeouts(caf::abstract_actor*) override {}
  void schedule_message(time_point, caf::strong_actor_ptr,
                        caf::mailbox_element_ptr) override {}
  void schedule_message(time_point, caf::group, caf::strong_actor_ptr,
                        caf::message) override {}
  void cancel_all() override {}
};

class Worker;

// Thread-safe.
class Scheduler : public caf::scheduler::abstract_coordinator {
 public:
  using Clock = std::chrono::steady_clock;
  // How long a worker runs the actors that follow from one turn, while others
  // wait.
  static constexpr std::chrono::microseconds kQuantum{500};

  explicit Scheduler(caf::actor_system& system);
  // For caf::actor_system_config::load().
  static caf::actor_system::module* make(caf::actor_system& system,
                                         caf::detail::type_list<>);

  // For CAF. Allocates for CAF's own actors, which the engine does not use.
  void enqueue(caf::resumable* work) override;
  // For the engine. Takes a reference of `ready.work`, and releases it when the
  // work has run.
  void enqueue(Ready& ready) noexcept;
  // Whether somebody waits for a worker.
  bool has_waiting() const {
    return waiting_.load(std::memory_order_relaxed) > 0;
  }
  // From now on idle workers sleep at once.
  void stop_polling() { polls_.store(false, std::memory_order_relaxed); }
  // Binds worker i to core cores[i]. REQUIRES: there are as many.
  void pin(const std::vector<int>& cores);
  // The worker of this thread, of any engine; null: none.
  static Worker* this_worker();

  // Keeps its exception for check_started().
  void start() override;
  void stop() override;
  // Throws if not all workers could be started.
  void check_started() const;
  caf::actor_clock& clock() noexcept override { return clock_; }

 private:
  friend class Worker;
  struct Queue {
    Ready* first = nullptr;
    Ready* last = nullptr;
  };
  static void start(Worker& worker);
  static void append(Queue& queue, Ready& ready);
  Ready* take_locked();
  // Null when the scheduler stops.
  Ready* wait();
  bool look_for_work();
  void drop_all();

  NoClock clock_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<int> waiting_{0};  // in the queues
  std::atomic<int> looking_{0};  // workers that look for work
  std::atomic<bool> polls_{true};
  std::mutex mutex_;  // guards the below
  std::condition_variable woken_;
  Queue normal_, urgent_;
  UrgentFirst order_;
  int sleeping_ = 0;
  bool stop_ = false;
  std::exception_ptr failure_;  // of start()
};

// Runs the scheduler's work, on a thread of its own. Only this thread accesses
// it.
class Worker : public caf::execution_unit {
 public:
  Worker(caf::actor_system& system, Scheduler& scheduler, size_t number);

  // Its index among the workers of its scheduler, from 0 on.
  size_t number() const { return number_; }
  bool is_of(const Scheduler* scheduler) const {
    return &scheduler_ == scheduler;
  }
  // For CAF.
  void exec_later(caf::resumable* work) override;
  // Sets what this worker runs next. Takes a reference of ready.work.
  void run_next(Ready& ready);
  // Moves the content of the next slot to the queue.
  void publish();
  // The begin of the time slice.
  Scheduler::Clock::time_point slice_start() const { return slice_start_; }
  // Whether somebody waits for a worker.
  bool is_wanted() const { return scheduler_.has_waiting(); }
  // Starts another time slice, if nobody waits.
  bool renew_slice();

 private:
  friend class Scheduler;
  void run();
  Ready* next();

  Scheduler& scheduler_;
  const size_t number_;
  Ready* next_ = nullptr;
  Scheduler::Clock::time_point slice_start_;
  std::thread thread_;
};

}  // namespace tagflow::actors
