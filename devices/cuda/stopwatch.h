// CudaStopwatch: measures when a GPU was busy, for its observer.
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

// Measures times by pairs of events on the GPU's streams, only while there is
// an observer. If CUDA fails, or memory is exhausted, a time is not
// reported, with no other effect. Thread-safe.
class CudaStopwatch {
 public:
  // `device` is CUDA's number.
  explicit CudaStopwatch(int device) : device_(device) {}
  // REQUIRES: nothing is being timed.
  ~CudaStopwatch();
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;

  // See Accelerator::observe(). First reports what the GPU has finished.
  void observe(Accelerator::Observer observer);

  // Times the work that one thread enqueues on `stream` during its life.
  // REQUIRES: the GPU is the thread's current one; the stopwatch outlives this.
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

  // Reports what the GPU has finished. REQUIRES: the GPU is the thread's
  // current one.
  void tell();

 private:
  struct Timed {
    cudaEvent_t start = nullptr, end = nullptr;
    std::string what;
    int64_t bytes = 0;
    uint64_t step = 0;
  };

  // Takes the same moment on the clocks of the GPU and of the host.
  Status set_zero();
  // Null if CUDA fails. REQUIRES for these: mutex_ is held.
  cudaEvent_t take_event();
  void give_event(cudaEvent_t event);
  std::chrono::steady_clock::time_point time_of(cudaEvent_t event) const;

  const int device_;
  ActivityObserver observer_;
  std::mutex mutex_;  // guards the below
  std::vector<cudaEvent_t> free_;
  std::array<std::deque<Timed>, 3> timed_;  // by stream, not reported yet
  cudaEvent_t zero_ = nullptr;
  std::chrono::steady_clock::time_point zero_time_;
};

}  // namespace tagflow::devices
