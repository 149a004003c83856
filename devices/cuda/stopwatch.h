// CudaStopwatch: when a GPU was at work, for who observes it.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "devices/activity_observer.h"
#include "graph/status.h"

namespace tagflow::devices {

// Takes times by pairs of events on the GPU's streams, and only where somebody
// observes. Where CUDA fails, or memory is out, a time is not told, and nothing
// else happens.
// Thread-safe.
class CudaStopwatch {
 public:
  // `device` is CUDA's number.
  explicit CudaStopwatch(int device) : device_(device) {}
  // REQUIRES: nothing is timed.
  ~CudaStopwatch();
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;

  // See Accelerator::observe(). What the GPU has ended is told of before.
  void observe(Accelerator::Observer observer);

  // Times what is enqueued on `stream` in its life, by one thread. REQUIRES:
  // the GPU is the thread's; the stopwatch lives as long.
  class Lap {
   public:
    Lap(CudaStopwatch& watch, AcceleratorActivity::Stream kind,
        cudaStream_t stream, std::string_view what, int64_t bytes,
        uint64_t step);
    ~Lap();
    Lap(const Lap&) = delete;
    Lap& operator=(const Lap&) = delete;

   private:
    CudaStopwatch& watch_;
    const AcceleratorActivity::Stream kind_;
    const cudaStream_t stream_;
    const std::string_view what_;
    const int64_t bytes_;
    const uint64_t step_;
    cudaEvent_t start_ = nullptr;  // null: not timed
  };

  // Tells of what the GPU has ended. REQUIRES: the GPU is the thread's.
  void tell();

 private:
  struct Timed {
    cudaEvent_t start = nullptr, end = nullptr;
    std::string what;
    int64_t bytes = 0;
    uint64_t step = 0;
  };

  // A moment of the GPU, and of the host.
  Status set_zero();
  // Null where CUDA fails. REQUIRES of these: mutex_ is held.
  cudaEvent_t take_event();
  void give_event(cudaEvent_t event);
  std::chrono::steady_clock::time_point time_of(cudaEvent_t event) const;

  const int device_;
  ActivityObserver observer_;
  std::mutex mutex_;  // guards the below
  std::vector<cudaEvent_t> free_;
  std::array<std::deque<Timed>, 3> timed_;  // by stream, not told yet
  cudaEvent_t zero_ = nullptr;
  std::chrono::steady_clock::time_point zero_time_;
};

}  // namespace tagflow::devices
