// WorkerParallel: distributes shards of one kernel to the workers of a
// scheduler.
#pragma once

#include "actors/runtime/scheduler.h"
#include "devices/kernel.h"

namespace tagflow::actors {

// The caller runs shards until none is left, and helpers on other workers do
// the same; a late helper finds nothing to do. The caller waits only for shards
// that other workers are still running. Thread-safe.
class WorkerParallel : public devices::Parallel {
 public:
  WorkerParallel(Scheduler& scheduler, int workers)
      : scheduler_(scheduler), workers_(workers) {}

  void run(int64_t total, double unit_cost, devices::RangeBody body) override;

 private:
  Scheduler& scheduler_;
  int workers_;
};

}  // namespace tagflow::actors
