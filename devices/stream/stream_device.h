// An accelerator that needs no hardware: its kernels are those of the CPU, its
// memory is a part of the host's that the host keeps away from.
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
  int64_t bandwidth = 0;  // of copies, bytes per second; 0: what the host has

  // InvalidArgument for what would only stall: latencies above 1 s and
  // bandwidths below 1 MB/s; and for numbers out of the ranges above.
  Status check() const;
};

// Note [Streams]
//
// Three threads, each with a queue: one runs kernels in the order of their
// launches, one copies from the host, one copies to it. They do not wait for
// one another, but for one event: a launch with inputs in the host's memory has
// them copied while kernels before it still run, and waits for the end of that.
// What does not fit then is copied when its turn has come, as memory may have
// become free. What still does not fit waits for saved values to leave: Note
// [Swapping] in devices/swapper.h. A launch is answered when its kernel is
// done; so who holds a tensor of this device may use it on any stream.
//
// Copies and launches take at least the time that the options say. The threads
// are awake for that time, for timers are too coarse.
//
// On destruction, kernels and copies that run come to their end; all others
// are answered Cancelled.
class StreamDevice final : public Device, public Accelerator {
 public:
  // Of info, the costs are filled in from the options. REQUIRES: these pass
  // their check().
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

  // How long the stream was at work so far, waiting for events left out.
  // Thread-safe.
  std::chrono::nanoseconds busy(AcceleratorActivity::Stream stream) const;

 private:
  class Activity;

  Status run(const Kernel& kernel, KernelContext& context);
  // Copies to this device's memory what is in the host's. `stream` is the one
  // that does it.
  Status bring_inputs(KernelContext& context,
                      AcceleratorActivity::Stream stream);
  Status keep_outputs(KernelContext& context);
  // As TensorHome says, but that what lies in the token stays there.
  Result<bool> is_elsewhere(const Tensor& tensor) const;
  Result<bool> has_to_come(const Tensor& tensor) const;
  // The tensor in the memory of `to`, in the time that a copy takes.
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

// Lets devices of type "STREAM" run the CPU's kernels, where these are
// synchronous and all that the node takes and gives is plain.
void register_stream_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices
