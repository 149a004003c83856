#include "devices/cuda/lane.h"

#include <chrono>
#include <thread>

#include "devices/cuda/status.h"

namespace tagflow::devices {

Result<std::unique_ptr<CudaLane>> CudaLane::make(int depth) {
  std::unique_ptr<CudaLane> lane(new CudaLane);
  TAGFLOW_RETURN_IF_ERROR(cuda_status(
      cudaStreamCreateWithFlags(&lane->stream_, cudaStreamNonBlocking),
      "making a stream"));
  lane->events_.reserve(size_t(depth));
  for (int i = 0; i < depth; ++i) {
    cudaEvent_t event = nullptr;
    TAGFLOW_RETURN_IF_ERROR(
        cuda_status(cudaEventCreateWithFlags(
                        &event, cudaEventDisableTiming | cudaEventBlockingSync),
                    "making an event"));
    lane->events_.push_back(event);
  }
  return lane;
}

CudaLane::~CudaLane() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

Result<uint64_t> CudaLane::record() {
  const uint64_t ticket = issued_ + 1;
  if (ticket > events_.size())
    TAGFLOW_RETURN_IF_ERROR(wait(ticket - events_.size()));
  TAGFLOW_RETURN_IF_ERROR(cuda_status(
      cudaEventRecord(event_of(ticket), stream_), "recording an event"));
  issued_ = ticket;
  return ticket;
}

bool CudaLane::passed(uint64_t ticket) const {
  if (ticket <= passed_.load(std::memory_order_acquire)) return true;
  const cudaError_t state = cudaEventQuery(event_of(ticket));
  // CUDA keeps this result as the thread's last error, where the next launch
  // would find it.
  if (state == cudaErrorNotReady) cudaGetLastError();
  if (state != cudaSuccess) return false;
  note_passed(ticket);
  return true;
}

Status CudaLane::hold(cudaStream_t other, uint64_t ticket) const {
  if (ticket <= passed_.load(std::memory_order_acquire)) return {};
  return cuda_status(cudaStreamWaitEvent(other, event_of(ticket), 0),
                     "waiting for an event");
}

// Spins first, since a sleeping thread takes long to wake; then sleeps.
Status CudaLane::wait(uint64_t ticket) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSpin{50};
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    if (passed(ticket)) return {};
    std::this_thread::yield();
  } while (Clock::now() < end);
  TAGFLOW_RETURN_IF_ERROR(cuda_status(cudaEventSynchronize(event_of(ticket)),
                                      "waiting for the GPU"));
  note_passed(ticket);
  return {};
}

Status CudaLane::drain() const {
  return cuda_status(cudaStreamSynchronize(stream_), "waiting for the GPU");
}

void CudaLane::note_passed(uint64_t ticket) const {
  uint64_t before = passed_.load(std::memory_order_relaxed);
  while (ticket > before && !passed_.compare_exchange_weak(
                                before, ticket, std::memory_order_release,
                                std::memory_order_relaxed)) {
  }
}

}  // namespace tagflow::devices
