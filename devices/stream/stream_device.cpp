#include "devices/stream/stream_device.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace tagflow::devices {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// What an engine pays for a launch here besides the latency asked for: a
// thread is told, and tells.
constexpr double kHandOverNanoseconds = 2000;
// Of copies without a limit, for estimates.
constexpr double kHostBytesPerNanosecond = 8;

// Returns at `end`, not before and hardly after: sleeps where there is time to
// wake up late.
void hold_until(Clock::time_point end) {
  constexpr std::chrono::microseconds kLate{100};
  if (end - Clock::now() > 2 * kLate)
    std::this_thread::sleep_until(end - kLate);
  while (Clock::now() < end) {
  }
}

graph::DeviceInfo with_costs(graph::DeviceInfo info,
                             const StreamOptions& options) {
  info.host_memory = false;
  info.memory_limit = options.memory;
  info.launch_ns =
      kHandOverNanoseconds + double(options.launch_latency.count());
  info.link_latency_ns =
      kHandOverNanoseconds + double(options.copy_latency.count());
  info.link_bytes_per_ns = options.bandwidth > 0
                               ? double(options.bandwidth) / 1e9
                               : kHostBytesPerNanosecond;
  return info;
}

}  // namespace

// Something that a stream does: counted and reported when it ends.
class StreamDevice::Activity {
 public:
  Activity(StreamDevice& device, AcceleratorActivity::Stream stream,
           std::string_view what, int64_t bytes)
      : device_(device), record_{stream, what, bytes, Clock::now(), {}} {}
  ~Activity() {
    record_.end = Clock::now();
    device_.busy_ns_[size_t(record_.stream)].fetch_add(
        nanoseconds(record_.end - record_.start).count(),
        std::memory_order_relaxed);
    device_.observer_.tell(record_);
  }
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  Clock::time_point start() const { return record_.start; }

 private:
  StreamDevice& device_;
  AcceleratorActivity record_;
};

StreamDevice::StreamDevice(graph::DeviceInfo info, StreamOptions options)
    : Device(with_costs(std::move(info), options)),
      options_(options),
      allocator_(TrackingAllocator::make(
          {this->info().name.to_string(), options.memory, false})),
      home_("stream", this->info().name.to_string(), *allocator_) {}

StreamDevice::~StreamDevice() {
  // All of them first, and none gone before the last callback, which may use
  // any of them.
  for (Stream* stream : {&execution_, &to_device_, &to_host_}) stream->stop();
  for (Stream* stream : {&execution_, &to_device_, &to_host_}) stream->join();
}

void StreamDevice::launch(const Kernel& kernel, KernelContext& context,
                          Completion done) {
  StreamEvent inputs_here;
  if (std::ranges::any_of(context.inputs(), [this](const Tensor& input) {
        const Result<bool> elsewhere = is_elsewhere(input);
        return elsewhere.ok() && *elsewhere;
      }))
    inputs_here = to_device_.enqueue([this, &context](Stream::Turn turn) {
      // An error has its cause then too when the kernel's turn comes.
      if (turn == Stream::Turn::kRun && !context.cancelled())
        (void)bring_inputs(context, AcceleratorActivity::Stream::kToDevice)
            .ok();
    });
  execution_.enqueue([this, &kernel, &context, inputs_here,
                      done = std::move(done)](Stream::Turn turn) {
    inputs_here.wait();  // in any case: a copy may be using the context
    done(turn == Stream::Turn::kRun ? run(kernel, context) : home_.destroyed());
  });
}

Status StreamDevice::run(const Kernel& kernel, KernelContext& context) {
  constexpr auto kStream = AcceleratorActivity::Stream::kExecution;
  if (context.cancelled()) return home_.step_cancelled();
  TAGFLOW_RETURN_IF_ERROR(bring_inputs(context, kStream));
  const Activity activity(*this, kStream, context.node().name(), 0);
  hold_until(activity.start() + options_.launch_latency);
  StepInfo step = context.step();
  step.parallel = nullptr;  // this thread is the device
  KernelContext here(&context.node(), context.mutable_inputs(),
                     context.mutable_outputs(), &step, &context.tag(),
                     allocator_.get());
  // The stream goes on, whatever the kernel throws.
  TAGFLOW_RETURN_IF_ERROR(without_exceptions(
      context.node().op(), [&] { return kernel.compute(here); }));
  return keep_outputs(context);
}

Result<bool> StreamDevice::is_elsewhere(const Tensor& tensor) const {
  if (tensor.buffer() == nullptr) return false;
  return home_.is_elsewhere(tensor);
}

Result<bool> StreamDevice::has_to_come(const Tensor& tensor) const {
  if (tensor.buffer() == nullptr) return false;
  return home_.has_to_come(tensor);
}

Result<Tensor> StreamDevice::copy(const Tensor& tensor, Allocator& to,
                                  AcceleratorActivity::Stream stream) {
  TAGFLOW_ASSIGN(Tensor copied,
                 Tensor::allocate(tensor.dtype(), tensor.shape(), to));
  const size_t bytes = tensor.bytes();
  const Activity activity(*this, stream, {}, int64_t(bytes));
  if (bytes > 0) std::memcpy(copied.mutable_raw(), tensor.raw(), bytes);
  nanoseconds least = options_.copy_latency;
  if (options_.bandwidth > 0)
    least +=
        nanoseconds(int64_t(double(bytes) * 1e9 / double(options_.bandwidth)));
  hold_until(activity.start() + least);
  return copied;
}

Status StreamDevice::bring_inputs(KernelContext& context,
                                  AcceleratorActivity::Stream stream) {
  for (Tensor& input : context.mutable_inputs()) {
    TAGFLOW_ASSIGN(const bool elsewhere, is_elsewhere(input));
    if (elsewhere) {
      TAGFLOW_ASSIGN(input, copy(input, *allocator_, stream));
    }
  }
  return {};
}

// A kernel of the CPU may make outputs by other means than its context; these
// come over too.
Status StreamDevice::keep_outputs(KernelContext& context) {
  for (Tensor& output : context.mutable_outputs()) {
    TAGFLOW_ASSIGN(const bool elsewhere, is_elsewhere(output));
    if (elsewhere) {
      TAGFLOW_ASSIGN(output, upload(output));
    }
  }
  return {};
}

void StreamDevice::copy_to_host(Tensor tensor, Copied done) {
  if (host_readable(tensor)) return done(std::move(tensor));
  const Result<bool> elsewhere = is_elsewhere(tensor);
  if (!elsewhere.ok()) return done(elsewhere.status());
  to_host_.enqueue([this, tensor = std::move(tensor),
                    done = std::move(done)](Stream::Turn turn) mutable {
    if (turn == Stream::Turn::kAbandon) return done(home_.destroyed());
    Result<Tensor> copied =
        copy(tensor, host_allocator(), AcceleratorActivity::Stream::kToHost);
    tensor.reset();  // who is told may count on the memory
    done(std::move(copied));
  });
}

void StreamDevice::copy_from_host(Tensor tensor, Copied done) {
  const Result<bool> to_copy = has_to_come(tensor);
  if (!to_copy.ok()) return done(to_copy.status());
  if (!*to_copy) return done(std::move(tensor));
  to_device_.enqueue([this, tensor = std::move(tensor),
                      done = std::move(done)](Stream::Turn turn) mutable {
    if (turn == Stream::Turn::kAbandon) return done(home_.destroyed());
    Result<Tensor> copied =
        copy(tensor, *allocator_, AcceleratorActivity::Stream::kToDevice);
    tensor.reset();
    done(std::move(copied));
  });
}

Result<Tensor> StreamDevice::upload(const Tensor& tensor) {
  TAGFLOW_ASSIGN(const bool to_copy, has_to_come(tensor));
  if (!to_copy) return tensor;
  TAGFLOW_ASSIGN(Tensor copied,
                 Tensor::allocate(tensor.dtype(), tensor.shape(), *allocator_));
  if (tensor.bytes() > 0)
    std::memcpy(copied.mutable_raw(), tensor.raw(), tensor.bytes());
  return copied;
}

nanoseconds StreamDevice::busy(AcceleratorActivity::Stream stream) const {
  return nanoseconds(busy_ns_[size_t(stream)].load(std::memory_order_relaxed));
}

}  // namespace tagflow::devices
