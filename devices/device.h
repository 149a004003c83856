// Device: where the nodes of a partition run, and whose memory they use.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "devices/kernel.h"
#include "devices/memory_stats.h"
#include "graph/placement/device_info.h"

namespace tagflow::devices {

class MemoryLedger;  // devices/memory_ledger.h

// Note [Device memory]
//
// An accelerator's kernels read and write memory of its own, which the host
// cannot see: its allocator says host_visible() == false. A tensor is in the
// memory of the allocator of its buffer. A tensor without a buffer is inline:
// its elements are in the token, which is always in the host's memory; an
// accelerator takes them as an argument of the launch. Strings, resources and
// variants are never in device memory. A tensor may outlive its device, but
// nobody can read it then.

// Whether the host may read the elements where they are.
inline bool host_readable(const Tensor& tensor) {
  return tensor.buffer() == nullptr ||
         tensor.buffer()->allocator->host_visible();
}

// Something that an accelerator did.
struct AcceleratorActivity {
  enum class Stream : uint8_t { kExecution, kToDevice, kToHost };
  Stream stream = Stream::kExecution;
  std::string_view what;  // the node's name, valid in the call; or empty
  int64_t bytes = 0;      // of a copy
  std::chrono::steady_clock::time_point start, end;
  uint64_t step = 0;  // the StepInfo::step_id that it belongs to; 0: unknown
};

// The part of a device that runs kernels by itself, in the order of their
// launches, and moves tensors between its memory and the host's. Callbacks are
// called exactly once, from any thread, possibly before the call returns; they
// must return soon, must not throw, and may call any method here. launch() and
// the copies throw nothing: whatever a kernel, the observer or an allocation
// throws is passed to the callback as an error. Thread-safe.
class Accelerator {
 public:
  using Copied = std::function<void(Result<Tensor>)>;
  using Observer = std::function<void(const AcceleratorActivity&)>;

  virtual ~Accelerator() = default;

  // Runs the kernel after all earlier launches, so their outputs may be its
  // inputs. Inputs may be in any memory: host buffers are copied over first,
  // and replaced in the context. Outputs are in the device's memory, or, if
  // they are small, inline or in the host's.
  //
  // `done` is called when the outputs may be passed to later launches here and
  // to copy_to_host(), or with the error: Cancelled if the step was
  // cancelled before the kernel's turn, or the device is being destroyed;
  // ResourceExhausted, with the allocator's statistics, if the device is out
  // of memory. A failed launch is not retried: launches run in order, so
  // nothing is left to run before it that could free memory.
  //
  // The kernel, the context and what it points to stay valid until then. Nobody
  // else uses the context's inputs; its allocator and its Parallel are not
  // used. Returns soon, and never blocks. REQUIRES: the kernel was made for
  // this type of device, and is not an AsyncKernel.
  virtual void launch(const Kernel& kernel, KernelContext& context,
                      Completion done) = 0;

  // Copies the tensor to the host's memory. A tensor that the host can read
  // already is returned as it is. Waits only for launches that the tensor
  // depends on. Cancelled if the device is being destroyed. In both copies,
  // `step` is the step that the observer reports; 0: none.
  virtual void copy_to_host(Tensor tensor, Copied done, uint64_t step = 0) = 0;
  // Copies the tensor to the device's memory, for use by later launches. A
  // tensor is returned as it is if it is there already, is inline, or is so
  // small that launches take it along. ResourceExhausted as above;
  // InvalidArgument for strings, handles, and tensors in another device's
  // memory.
  virtual void copy_from_host(Tensor tensor, Copied done,
                              uint64_t step = 0) = 0;
  // As copy_from_host(), synchronously: for constants, when a plan is made. May
  // block.
  virtual Result<Tensor> upload(const Tensor& tensor) = 0;

  // Calls `observer` after each kernel and copy, from the thread that saw its
  // end, possibly several at once. It replaces the previous observer, which
  // first receives what has ended, and may still be called a little later. An
  // empty one turns the reports off. Activity in progress may be reported to
  // either. Kernels that run on the host instead are not reported.
  virtual void observe(Observer observer) = 0;
};

// One device of a process: its name, its memory, and how its kernels run. The
// engine's DeviceSet owns it; it is destroyed when no session uses that set and
// no step of one is left. Thread-safe.
class Device {
 public:
  // REQUIRES: info.name is complete.
  explicit Device(graph::DeviceInfo info) : info_(std::move(info)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The facts about the device, which do not change while it lives.
  const graph::DeviceInfo& info() const { return info_; }
  // The type that kernels are registered for: "CPU", "STREAM", "GPU".
  const std::string& type() const { return *info_.name.type; }

  // The allocator of kernel outputs. It lives until the device and the last of
  // its buffers are gone.
  virtual Allocator& allocator() = 0;
  // All zero on a device that keeps no statistics.
  virtual MemoryStats memory() const = 0;
  // The ledger that counts the memory against its limit; null if there is no
  // limit or the device has no ledger. Lives as long as the device.
  virtual MemoryLedger* ledger() { return nullptr; }
  // The accelerator that runs the kernels; null if they run on the engine's
  // workers. Lives as long as the device.
  virtual Accelerator* accelerator() { return nullptr; }

 private:
  const graph::DeviceInfo info_;
};

}  // namespace tagflow::devices
