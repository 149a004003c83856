// Batcher: runs the rows of several requests at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/status.h"
#include "net/serving/batch_options.h"
#include "net/serving/request.h"
#include "net/serving/task_pool.h"

namespace tagflow::net::serving {

// Requests with the same *key*, such as those of one signature whose rows have
// the same shape, wait in one *queue*, in the order in which they came. The
// last batch of a queue is *open*: a request whose rows fit joins it. It is
// closed when it is full, when a request does not fit, or when it begins. A
// batch is *due* when it is full, or when its first request has waited for the
// time-out. At most so many batches run at a time, in the order in which they
// became due, whatever their queues are.
//
// The queues of one *owner*, such as a version of a model, have at most so many
// batches that do not run: another request is refused at once. A request whose
// deadline passes, or whose client goes, is answered at once, and leaves its
// queue; the run of a batch goes on for the others, and ends early when nobody
// waits for it any more.
//
// A request with more rows than a run may be cut into *pieces* (see
// BatchOptions::splits_large), all of which count for that limit. A piece
// becomes due when the one before it begins. So pieces take turns with other
// requests: a small one waits for one piece of each large one, not for all.
//
// Thread-safe.
class Batcher {
 public:
  using Done = std::function<void(Result<Tensors>)>;
  // Runs a batch, and calls its argument once, on any thread. Must not wait for
  // the run.
  struct Run {
    Tensors inputs;
    int64_t rows = 0;  // without those that only fill the batch
    std::chrono::steady_clock::time_point deadline;  // max(): none
    std::shared_ptr<CallEnd> end;
  };
  using Runner = std::function<void(Run, Done)>;

  struct Task {
    const void* owner = nullptr;
    std::string key;
    Tensors inputs;
    int64_t rows = 0;
    std::chrono::steady_clock::time_point deadline =
        std::chrono::steady_clock::time_point::max();
    std::shared_ptr<CallEnd> end;  // may be null
    // Of the first task of a batch. REQUIRES: all of one key are alike
    Runner runner;
    // Called once: on this thread, on one of the runner's, or on those of the
    // batcher.
    Done done;
  };
  struct Figures {
    uint64_t waiting_tasks = 0, waiting_batches = 0, running_batches = 0;
    uint64_t batches = 0, rows = 0, padding = 0;  // that have run
  };

  // ResourceExhausted without a thread. REQUIRES: the options are valid
  static Result<std::unique_ptr<Batcher>> create(const BatchOptions& options);
  // Requests that wait are answered with Cancelled; those that run are answered
  // later.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  // InvalidArgument for more rows than a batch may have, and ResourceExhausted
  // if too much waits, by `done`. REQUIRES: count_rows(task.inputs) is
  // task.rows
  void add(Task task);
  Figures figures() const;

 private:
  struct State;
  explicit Batcher(std::shared_ptr<State> state);
  void add_in_pieces(Task task);

  const std::shared_ptr<State> state_;
  std::unique_ptr<TaskPool> pool_;  // begins runs
};

}  // namespace tagflow::net::serving
