#include "actors/runtime/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "actors/runtime/job.h"
#include "actors/runtime/pause.h"

namespace tagflow::actors {
namespace {

// A shorter shard is not worth its overhead. Idle workers poll for some time,
// so that one gets a shard within about 1 us. Of values from 3 to 20 us, this
// was the fastest for an LSTM of 128 units.
constexpr double kShardNanoseconds = 6e3;
// More shards than workers balance the load when workers are late.
constexpr int64_t kShardsPerWorker = 4;
// About 50 ns each.
constexpr int kLooks = 1000;
// How long a helper keeps its worker from others who wait for one: the worker
// of the caller is busy until the end of the call, which may take minutes, but
// those of its helpers take turns (Note [Turns] in actors/runtime/scheduler.h).
constexpr double kLongestShard = 20e6;

// The work of one call. Lives until the last helper has accessed it; `body` is
// called only while the caller is in run(). Its first exception is kept; shards
// that have not begun by then are skipped.
//
// Each worker begins at its own shards. Calls with the same number of shards
// give it the same ones, so that data that it wrote in the last call, such as
// the state of a loop, is still in its cache. A thread that is not a worker
// begins at the first shard.
class ShardedCall {
 public:
  ShardedCall(int64_t total, int64_t shards, int workers,
              devices::RangeBody body)
      : total_(total),
        shards_(shards),
        workers_(workers),
        body_(body),
        taken_(size_t(shards)) {}

  // Takes shards until none is left, or until `is_wanted` says that others wait
  // for this thread. Whether shards may be left.
  template <class IsWanted>
  bool work(const IsWanted& is_wanted) {
    const Worker* const worker = Scheduler::this_worker();
    const int64_t number = worker == nullptr ? 0 : int64_t(worker->number());
    const int64_t first = number % workers_ * shards_ / workers_;
    for (int64_t i = 0; i < shards_; ++i) {
      const int64_t shard = (first + i) % shards_;
      std::atomic<bool>& taken = taken_[size_t(shard)];
      // Most shards are taken when a helper is late: a read avoids contention.
      if (taken.load(std::memory_order_relaxed) ||
          taken.exchange(true, std::memory_order_acq_rel))
        continue;
      if (!has_thrown_.load(std::memory_order_relaxed)) compute(shard);
      done_.fetch_add(1, std::memory_order_acq_rel);
      if (is_wanted()) return true;
    }
    return false;
  }
  // Waits for the shards that others are still running. A yield may give the
  // core to another process for a whole time slice, so this thread first polls
  // for the time of some shards.
  void wait() const {
    for (int look = 0; look < kLooks; ++look) {
      if (is_done()) return;
      pause_briefly();
    }
    while (!is_done()) std::this_thread::yield();
  }
  // REQUIRES: wait() has returned.
  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

 private:
  void compute(int64_t shard) {
    try {
      body_(begin_of(shard), begin_of(shard + 1));
    } catch (...) {
      if (!has_thrown_.exchange(true)) thrown_ = std::current_exception();
    }
  }
  bool is_done() const {
    return done_.load(std::memory_order_acquire) == shards_;
  }
  int64_t begin_of(int64_t shard) const {
    return int64_t(__int128(total_) * shard / shards_);
  }

  const int64_t total_;
  const int64_t shards_;
  const int workers_;
  const devices::RangeBody body_;
  std::vector<std::atomic<bool>> taken_;
  std::atomic<int64_t> done_{0};
  std::atomic<bool> has_thrown_{false};
  std::exception_ptr thrown_;  // written by the thread that set has_thrown_
};

// Lets a worker work for the call. Whoever waits for a worker then goes first.
void help(Scheduler& scheduler, const std::shared_ptr<ShardedCall>& call) {
  run_on_worker(scheduler, [&scheduler, call] {
    if (!call->work([&] { return scheduler.has_waiting(); })) return;
    try {
      help(scheduler, call);
    } catch (const std::bad_alloc&) {
      // The caller does what is left.
    }
  });
}

}  // namespace

void WorkerParallel::run(int64_t total, double unit_cost,
                         devices::RangeBody body) {
  const double cost = unit_cost * double(total);
  const int64_t useful = int64_t(std::min(cost / kShardNanoseconds, 1e6));
  // Those of a long call are short, so that helpers can take turns.
  const int64_t in_turns = int64_t(std::min(cost / kLongestShard, 1e6));
  const int64_t shards = std::min(
      {useful, std::max(workers_ * kShardsPerWorker, in_turns), total});
  if (workers_ == 1 || shards <= 1) {
    body(0, total);
    return;
  }
  std::shared_ptr<ShardedCall> call;
  try {
    call = std::make_shared<ShardedCall>(total, shards, workers_, body);
    const int64_t helpers = std::min<int64_t>(workers_, shards) - 1;
    for (int64_t i = 0; i < helpers; ++i) help(scheduler_, call);
  } catch (const std::bad_alloc&) {
    // Fewer helpers, or none, suffice: the caller runs shards, too.
  }
  if (call == nullptr) {
    body(0, total);
    return;
  }
  call->work([] { return false; });
  call->wait();
  call->rethrow();
}

}  // namespace tagflow::actors
