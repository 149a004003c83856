#include "devices/cuda/stopwatch.h"

#include <utility>

#include "devices/cuda/status.h"
#include "graph/fault.h"

namespace tagflow::devices {

CudaStopwatch::~CudaStopwatch() {
  const OnDevice on(device_);
  for (const std::deque<Timed>& row : timed_)
    for (const Timed& timed : row)
      for (cudaEvent_t event : {timed.start, timed.end})
        cudaEventDestroy(event);
  for (cudaEvent_t event : free_) cudaEventDestroy(event);
  if (zero_ != nullptr) cudaEventDestroy(zero_);
}

void CudaStopwatch::observe(Accelerator::Observer observer) {
  const OnDevice on(device_);
  tell();
  if (observer && !set_zero().ok()) observer = {};
  observer_.set(std::move(observer));
}

// On its own stream, which waits for nothing.
Status CudaStopwatch::set_zero() {
  const std::lock_guard lock(mutex_);
  if (zero_ == nullptr)
    TAGFLOW_RETURN_IF_ERROR(cuda_status(
        cudaEventCreateWithFlags(&zero_, cudaEventDefault), "making an event"));
  cudaStream_t stream = nullptr;
  TAGFLOW_RETURN_IF_ERROR(
      cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                  "making a stream"));
  Status status =
      cuda_status(cudaEventRecord(zero_, stream), "recording an event");
  if (status.ok())
    status = cuda_status(cudaEventSynchronize(zero_), "waiting for the GPU");
  zero_time_ = std::chrono::steady_clock::now();
  cudaStreamDestroy(stream);
  return status;
}

cudaEvent_t CudaStopwatch::take_event() {
  cudaEvent_t event = nullptr;
  if (free_.empty()) {
    const cudaError_t made = cudaEventCreateWithFlags(&event, cudaEventDefault);
    return made == cudaSuccess ? event : nullptr;
  }
  event = free_.back();
  free_.pop_back();
  return event;
}

void CudaStopwatch::give_event(cudaEvent_t event) {
  if (!guarded([&] { free_.push_back(event); }).ok()) cudaEventDestroy(event);
}

CudaStopwatch::Lap::Lap(CudaStopwatch& watch, AcceleratorActivity::Stream kind,
                        cudaStream_t stream, std::string_view what,
                        int64_t bytes, uint64_t step)
    : watch_(watch),
      kind_(kind),
      stream_(stream),
      what_(what),
      bytes_(bytes),
      step_(step) {
  if (!watch.observer_.is_set()) return;
  const std::lock_guard lock(watch.mutex_);
  start_ = watch.take_event();
  if (start_ != nullptr && cudaEventRecord(start_, stream) != cudaSuccess)
    watch.give_event(std::exchange(start_, nullptr));
}

CudaStopwatch::Lap::~Lap() {
  if (start_ == nullptr) return;
  const std::lock_guard lock(watch_.mutex_);
  const cudaEvent_t end = watch_.take_event();
  if (end != nullptr && cudaEventRecord(end, stream_) == cudaSuccess) {
    const Status noted = guarded([&] {
      watch_.timed_[size_t(kind_)].push_back(
          {start_, end, std::string(what_), bytes_, step_});
    });
    if (noted.ok()) return;
  }
  watch_.give_event(start_);
  if (end != nullptr) watch_.give_event(end);
}

std::chrono::steady_clock::time_point CudaStopwatch::time_of(
    cudaEvent_t event) const {
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, zero_, event);
  return zero_time_ +
         std::chrono::nanoseconds(int64_t(double(milliseconds) * 1e6));
}

void CudaStopwatch::tell() {
  if (!observer_.is_set()) return;
  std::vector<std::pair<AcceleratorActivity, std::string>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (size_t kind = 0; kind < timed_.size(); ++kind) {
      std::deque<Timed>& row = timed_[kind];
      while (!row.empty() && cudaEventQuery(row.front().end) == cudaSuccess) {
        Timed& timed = row.front();
        ended.emplace_back(
            AcceleratorActivity{AcceleratorActivity::Stream(kind),
                                {},
                                timed.bytes,
                                time_of(timed.start),
                                time_of(timed.end),
                                timed.step},
            std::move(timed.what));
        free_.insert(free_.end(), {timed.start, timed.end});
        row.pop_front();
      }
    }
    cudaGetLastError();  // an event that has not passed is not an error
  }
  for (auto& [activity, what] : ended) {
    activity.what = what;
    observer_.tell(activity);
  }
}

}  // namespace tagflow::devices
