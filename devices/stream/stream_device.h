// An accelerator without hardware: its kernels are those of the CPU, its memory
// is a part of the host's that the host does not access.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "devices/activity_observer.h"
#include "devices/device_registry.h"
#include "devices/stream/stream.h"
#include "devices/tensor_home.h"
#include "devices/tracking_allocator.h"

namespace tagflow::devices {

class KernelRegistry;

struct StreamOptions {
  int64_t memory = int64_t(2) << 30;           // bytes; more than 0
  std::chrono::nanoseconds launch_latency{0};  // of each kernel, as busy time
  std::chrono::nanoseconds copy_latency{0};    // of each copy
  int64_t bandwidth = 0;  // bytes per second, of copies; 0: unlimited

  // InvalidArgument for values that would only stall: latencies above 1 s and
  // bandwidths below 1 MB/s; and for numbers out of the ranges above.
  Status check() const;
};

// Note [Streams]
//
// Three threads, each with a queue: one runs kernels in the order of their
// launches, one copies from the host, one copies to it. They wait for one
// another in only one case: a launch with inputs in the host's memory has them
// copied while earlier kernels still run, and waits for that copy. An input
// that does not fit then is copied at the launch's turn, as memory may have
// become free. If it still does not fit, the launch waits for saved values to
// be swapped out: Note [Swapping] in devices/swapper.h. A launch is answered
// when its kernel is done; so a tensor of this device may be used on any
// stream.
//
// Copies and launches take at least the time that the options give. The threads
// spin for that time, because timers are too coarse.
//
// On destruction, running kernels and copies finish; all others are answered
// Cancelled.
class StreamDevice final : public Device, public Accelerator {
 public:
  // Fills the costs in `info` in from the options. REQUIRES: these pass their
  // check().
  explicit StreamDevice(graph::DeviceInfo info, StreamOptions options = {});
  // REQUIRES: not called from a callback of this device.
  ~StreamDevice() override;

  Allocator& allocator() override { return *allocator_; }
  MemoryStats memory() const override { return allocator_->stats(); }
  MemoryLedger* ledger() override { return &allocator_->ledger(); }
  Accelerator* accelerator() override { return this; }

  void launch(const Kernel& kernel, KernelContext& context,
              Completion done) override;
  void copy_to_host(Tensor tensor, Copied done, uint64_t step = 0) override;
  void copy_from_host(Tensor tensor, Copied done, uint64_t step = 0) override;
  Result<Tensor> upload(const Tensor& tensor) override;
  void observe(Observer observer) override { observer_.set(observer); }

  // The time that the stream was busy so far, without waits for events.
  // Thread-safe.
  std::chrono::nanoseconds busy(AcceleratorActivity::Stream stream) const;

 private:
  class Activity;

  Status run(const Kernel& kernel, KernelContext& context);
  // Copies inputs from the host's memory to this device's, on `stream`.
  Status bring_inputs(KernelContext& context,
                      AcceleratorActivity::Stream stream);
  Status keep_outputs(KernelContext& context);
  // As TensorHome::is_elsewhere(), except that inline values stay in the token.
  Result<bool> is_elsewhere(const Tensor& tensor) const;
  Result<bool> has_to_come(const Tensor& tensor) const;
  // Copies the tensor to the memory of `to`, in the time that a copy takes.
  Result<Tensor> copy(const Tensor& tensor, Allocator& to,
                      AcceleratorActivity::Stream stream, uint64_t step);
  void enqueue_copy(Stream& stream, AcceleratorActivity::Stream kind,
                    Tensor tensor, Allocator& to, Copied done, uint64_t step);

  const StreamOptions options_;
  const TrackingAllocator::Owner allocator_;
  const std::shared_ptr<Swapper> swapper_;
  const TensorHome home_;
  ActivityObserver observer_;
  std::array<std::atomic<int64_t>, 3> busy_ns_{};
  Stream execution_;
  Stream to_device_;
  Stream to_host_;
};

// "stream", with the options memory, latency, bandwidth and copy-latency.
DeviceType stream_device_type();

// Lets devices of type "STREAM" run the CPU's kernels if they are synchronous
// and all inputs and outputs of the node are plain.
void register_stream_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
