// CudaLane: a CUDA stream whose progress is counted in tickets.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/status.h"

namespace tagflow::devices {

// Each ticket is a point in the stream; it has passed when everything enqueued
// before it is done. At most `depth` of them are open at a time, each an event
// of a ring: ticket t + depth reuses the event of t once t has passed. A waiter
// for t then waits for a later point, which is correct, too.
//
// One thread, the lane's own, enqueues and records; it waits if the ring is
// full. Everything else is thread-safe. REQUIRES for all: the GPU is the
// calling thread's current one.
class CudaLane {
 public:
  // Internal if CUDA fails. REQUIRES: depth > 0
  static Result<std::unique_ptr<CudaLane>> make(int depth);
  // REQUIRES: nobody waits.
  ~CudaLane();
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;

  cudaStream_t stream() const { return stream_; }

  // Records the next ticket, from 1, after everything enqueued so far.
  Result<uint64_t> record();
  // Whether it has passed; false if the GPU has failed. Ticket 0 has passed.
  bool passed(uint64_t ticket) const;
  // Makes work enqueued on `other` from now on wait for the ticket. REQUIRES:
  // it was recorded.
  Status hold(cudaStream_t other, uint64_t ticket) const;
  // Blocks until the ticket has passed, or the GPU has failed.
  Status wait(uint64_t ticket) const;
  // Blocks until all enqueued work is done.
  Status drain() const;

 private:
  CudaLane() = default;
  cudaEvent_t event_of(uint64_t ticket) const {
    return events_[ticket % events_.size()];
  }
  void note_passed(uint64_t ticket) const;

  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;
  uint64_t issued_ = 0;  // only for the lane's thread
  mutable std::atomic<uint64_t> passed_{0};
};

}  // namespace tagflow::devices
