// CudaDevice: a GPU of this machine.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "devices/cuda/cuda_kernel.h"
#include "devices/cuda/memory.h"
#include "devices/cuda/mover.h"
#include "devices/cuda/pinned.h"
#include "devices/cuda/stopwatch.h"
#include "devices/cuda_type.h"
#include "devices/stream/stream.h"
#include "devices/tensor_home.h"

namespace tagflow::devices {

// Note [Three threads of a GPU]
//
// Three threads of the device make all calls of CUDA that take long, or may
// block. Each has a queue of tasks and a CUDA stream: one enqueues kernels (the
// lane `compute` of the memory), one copies from the host (the lane
// `arrivals`), one copies to it. Note [Stream order] says how the streams wait
// for one another; the threads hardly do.
//
// A launch is answered when it is enqueued. While CudaMemory::kLaunchesInFlight
// others are enqueued, it waits in the queue, not in its caller. A copy from
// the host is answered when it is enqueued, too; a copy to the host when the
// bytes have arrived. So the predicate of a loop, computed here, is fetched as
// soon as it is ready, while launches continue.
//
// The first two threads may wait for saved values to be swapped out when memory
// is short: Note [Swapping] in devices/swapper.h.
//
// Every copy goes through pinned memory of a fixed size: a large copy waits for
// its first part before the rest. CudaMover::readable() is the one exception.
//
// An error that the GPU does not recover from is kept; every later request gets
// it as its answer.
class CudaDevice final : public Device, public Accelerator {
 public:
  // See make_cuda_device().
  static Result<std::unique_ptr<Device>> make(graph::DeviceInfo info,
                                              const CudaOptions& options);
  // Queued work is answered Cancelled; enqueued work is finished. REQUIRES: not
  // called from a callback of this device.
  ~CudaDevice() override;

  Allocator& allocator() override { return *memory_; }
  MemoryStats memory() const override { return memory_->stats(); }
  MemoryLedger* ledger() override { return &memory_->ledger(); }
  Accelerator* accelerator() override { return this; }

  void launch(const Kernel& kernel, KernelContext& context,
              Completion done) override;
  void copy_to_host(Tensor tensor, Copied done, uint64_t step = 0) override;
  // Small values stay on the host; see Note [Small values].
  void copy_from_host(Tensor tensor, Copied done, uint64_t step = 0) override;
  Result<Tensor> upload(const Tensor& tensor) override;
  // Activity that ends after the observer was replaced, or that was enqueued
  // before it was set, is not reported.
  void observe(Observer observer) override {
    stopwatch_.observe(std::move(observer));
  }

 private:
  CudaDevice(graph::DeviceInfo info, CudaMemory::Owner memory);
  Status open();

  // The steps of a launch; each may continue on another thread, which takes
  // `done`. If it returns an error or throws, it has not taken it.
  template <class F>
  void step(const KernelContext& context, Completion& done, F&& go_on);
  Status fetch_steering(const CudaKernel& kernel, KernelContext& context,
                        Completion& done);
  Status begin(const CudaKernel& kernel, KernelContext& context,
               Completion& done);
  Status compute_on_host(const CudaKernel& kernel, KernelContext& context);
  Status finish_on_host(KernelContext& context, Completion& done);
  template <class F>
  void enqueue_copy(Stream& stream, Copied done, F copied);

  // On the launching thread.
  Status run(const CudaKernel& kernel, KernelContext& context);
  Status enqueue(const CudaKernel& kernel, KernelContext& context);
  Status stage(Tensor& input, uint64_t step);

  // On the thread that copies from the host.
  Result<Tensor> send(const Tensor& tensor, uint64_t step);
  // On the thread that copies to the host.
  Result<Tensor> fetch(const Tensor& tensor, uint64_t step);

  // As TensorHome::has_to_come(), except that small values stay.
  Result<bool> has_to_come(const Tensor& tensor) const;

  // OK, or the error that made the GPU unusable.
  Status usable() const;
  // Passes a status on; records it if the GPU has failed permanently.
  Status checked(Status status);

  const CudaMemory::Owner memory_;
  const std::shared_ptr<Swapper> swapper_;
  const TensorHome home_;
  CudaStopwatch stopwatch_;
  CudaMover mover_;
  std::unique_ptr<CudaLane> departures_;      // of copies to the host
  std::unique_ptr<PinnedRing> small_inputs_;  // sent with launches
  std::unique_ptr<PinnedRing> arriving_;
  PinnedBlock departing_;
  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  Status failure_;  // guarded by the mutex
  Stream launching_;
  Stream to_device_;
  Stream to_host_;
};

}  // namespace tagflow::devices
