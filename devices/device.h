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
// memory of the allocator of its buffer. One without a buffer is inline, and
// lies in the token, which is always the host's; an accelerator takes it as an
// argument of the launch. Strings, resources and variants are never in such
// memory. A tensor may outlive its device, though nobody can read it then.

// Whether the host may read the elements where they are.
inline bool host_readable(const Tensor& tensor) {
  return tensor.buffer() == nullptr ||
         tensor.buffer()->allocator->host_visible();
}

// Something that an accelerator did.
struct AcceleratorActivity {
  enum class Stream : uint8_t { kExecution, kToDevice, kToHost };
  Stream stream = Stream::kExecution;
  std::string_view what;  // the node's name; empty for a copy. Of the call only
  int64_t bytes = 0;      // of a copy
  std::chrono::steady_clock::time_point start, end;
  uint64_t step = 0;  // on whose account: StepInfo::step_id; 0: unknown
};

// The part of a device that runs kernels by itself, in the order of their
// launches, and moves tensors between its memory and the host's. Callbacks are
// called exactly once, from any thread, possibly before the call returns; they
// must return soon, must not throw, and may call any method here. Whatever else
// is thrown, by a kernel, for want of memory, or by the observer, is the error
// that a callback is given: launch() and the copies throw nothing.
// Thread-safe.
class Accelerator {
 public:
  using Copied = std::function<void(Result<Tensor>)>;
  using Observer = std::function<void(const AcceleratorActivity&)>;

  virtual ~Accelerator() = default;

  // Runs the kernel after all that was launched before, whose outputs may so be
  // its inputs. Inputs may be in any memory: what a buffer of the host holds is
  // copied over first, in its place in the context. Outputs come to be in the
  // device's memory, or, where they are small, inline or in the host's.
  //
  // `done` is called when the outputs may be handed on to later launches here
  // and to copy_to_host(), or with the error: Cancelled where the step was
  // cancelled before the kernel's turn, or the device is being destroyed;
  // ResourceExhausted, with the allocator's statistics, where its memory is.
  // A launch that fails is not tried again: in order, nothing that could free
  // memory is left to run before it.
  //
  // The kernel, the context and what it points to stay valid until then. The
  // context's inputs must be nobody else's; its allocator and its Parallel are
  // not used. Returns soon, and never blocks. REQUIRES: the kernel was made for
  // this type of device, and is no AsyncKernel.
  virtual void launch(const Kernel& kernel, KernelContext& context,
                      Completion done) = 0;

  // The tensor in the host's memory, once it is there. What the host can read
  // already is given back as it is. Waits for no launch but those that the
  // tensor depends on. Cancelled where the device is being destroyed.
  // Of both: `step` is on whose account, for the observer; 0: nobody's.
  virtual void copy_to_host(Tensor tensor, Copied done, uint64_t step = 0) = 0;
  // The tensor in the device's memory, when later launches may use it. What is
  // there already is given back as it is, and so is what is inline, or so small
  // that launches take it along.
  // ResourceExhausted as above; InvalidArgument for strings and handles, and
  // for what is in the memory of another device.
  virtual void copy_from_host(Tensor tensor, Copied done,
                              uint64_t step = 0) = 0;
  // The same, at once: for constants, when a plan is made. May block.
  virtual Result<Tensor> upload(const Tensor& tensor) = 0;

  // Calls `observer` after each kernel and copy, from the thread that saw its
  // end, possibly several at once. It takes the place of the one before, which
  // hears first of what has ended, and may be called a little later, too;
  // empty: nobody hears. Which of them hears of what is under way is open. What
  // the host computes in the device's stead is not told.
  virtual void observe(Observer observer) = 0;
};

// One device of a process: its name, its memory, and how its kernels run.
// Owned by the engine's DeviceSet; destroyed when no session uses that and no
// step of one is left. Thread-safe.
class Device {
 public:
  // REQUIRES: info.name is full.
  explicit Device(graph::DeviceInfo info) : info_(std::move(info)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The same for as long as the device lives.
  const graph::DeviceInfo& info() const { return info_; }
  // The type that kernels are registered for: "CPU", "STREAM", "GPU".
  const std::string& type() const { return *info_.name.type; }

  // What kernels here allocate their outputs from. It lives until the device
  // and the last of its buffers are gone.
  virtual Allocator& allocator() = 0;
  // All zero on a device that does not count.
  virtual MemoryStats memory() const = 0;
  // What counts the memory, where it has a limit; else null, also on a device
  // that does not tell. Lives as long as the device.
  virtual MemoryLedger* ledger() { return nullptr; }
  // What runs the kernels, or null: they run on the engine's workers. Lives as
  // long as the device.
  virtual Accelerator* accelerator() { return nullptr; }

 private:
  const graph::DeviceInfo info_;
};

}  // namespace tagflow::devices
