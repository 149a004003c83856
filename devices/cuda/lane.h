// CudaLane: a CUDA stream whose progress is counted in tickets.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/status.h"

namespace tagflow::devices {

// Each ticket is a point in the stream, passed when all that was enqueued
// there before it is done. At most `depth` of them are open at a time, each an
// event of a ring: the one of ticket t serves t + depth once t has passed. Who
// waits for t then waits for a later point, which is as good.
//
// One thread, the lane's own, enqueues and records; it is the one that waits
// where the ring is full. All else is thread-safe. REQUIRES of all: the GPU is
// the calling thread's.
class CudaLane {
 public:
  // Internal where CUDA fails. REQUIRES: depth > 0
  static Result<std::unique_ptr<CudaLane>> make(int depth);
  // REQUIRES: nobody waits.
  ~CudaLane();
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;

  cudaStream_t stream() const { return stream_; }

  // The next ticket, from 1, behind all that was enqueued so far.
  Result<uint64_t> record();
  // Whether it has passed. False also where the GPU has failed. Ticket 0 has.
  bool passed(uint64_t ticket) const;
  // Makes what is enqueued on `other` from now on wait for it. REQUIRES: it was
  // recorded.
  Status hold(cudaStream_t other, uint64_t ticket) const;
  // Blocks until then; an error of the GPU ends it too.
  Status wait(uint64_t ticket) const;
  // Blocks until all that was enqueued is done.
  Status drain() const;

 private:
  CudaLane() = default;
  cudaEvent_t event_of(uint64_t ticket) const {
    return events_[ticket % events_.size()];
  }
  void note_passed(uint64_t ticket) const;

  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> events_;
  uint64_t issued_ = 0;  // of the lane's thread
  mutable std::atomic<uint64_t> passed_{0};
};

}  // namespace tagflow::devices
