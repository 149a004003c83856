#include "devices/stream/stream_device.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "devices/state/guard.h"

namespace tagflow::devices {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

// The engine's cost of a launch besides the requested latency: a thread is
// woken, and answers.
constexpr double kHandOverNanoseconds = 2000;
// For copies without a limit, for estimates.
constexpr double kHostBytesPerNanosecond = 8;

// Returns at `end`, not before and hardly after: sleeps if there is enough
// time to wake up late.
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

// An activity of a stream: counted and reported when it ends.
class StreamDevice::Activity {
 public:
  Activity(StreamDevice& device, AcceleratorActivity::Stream stream,
           std::string_view what, int64_t bytes, uint64_t step)
      : device_(device), record_{stream, what, bytes, Clock::now(), {}, step} {}
  // If end() was not called, an exception is being handled already.
  ~Activity() {
    if (!ended_) (void)end().ok();
  }
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  Clock::time_point start() const { return record_.start; }
  // OK, or the exception of the observer.
  Status end() {
    ended_ = true;
    record_.end = Clock::now();
    device_.busy_ns_[size_t(record_.stream)].fetch_add(
        nanoseconds(record_.end - record_.start).count(),
        std::memory_order_relaxed);
    return guarded("observer", [this] { device_.observer_.tell(record_); });
  }

 private:
  StreamDevice& device_;
  AcceleratorActivity record_;
  bool ended_ = false;
};

StreamDevice::StreamDevice(graph::DeviceInfo info, StreamOptions options)
    : Device(with_costs(std::move(info), options)),
      options_(options),
      allocator_(TrackingAllocator::make(
          {this->info().name.to_string(), options.memory, false})),
      swapper_(std::make_shared<Swapper>(*this, allocator_->ledger(),
                                         options.memory)),
      home_("stream", this->info().name.to_string(), *allocator_) {
  allocator_->swap_by(swapper_);
  const auto let_wait = [](Stream& stream, Swapper::Waits waits) {
    stream.enqueue([waits](Stream::Fate) { Swapper::set_thread_waits(waits); });
  };
  let_wait(execution_, Swapper::Waits::kForAll);
  let_wait(to_device_, Swapper::Waits::kForLeaving);
}

StreamDevice::~StreamDevice() {
  swapper_->close();
  // All of them stop first, and none is destroyed before the last callback,
  // which may use any of them.
  for (Stream* stream : {&execution_, &to_device_, &to_host_}) stream->stop();
  for (Stream* stream : {&execution_, &to_device_, &to_host_}) stream->join();
}

void StreamDevice::launch(const Kernel& kernel, KernelContext& context,
                          Completion done) {
  const auto activate = [this, &kernel, &context](Stream::Fate fate,
                                                  const Completion& tell) {
    tell(
        fate == Stream::Fate::kRun
            ? guarded(context.node().op(), [&] { return run(kernel, context); })
            : home_.destroyed());
  };
  // Everything that it needs is allocated before anything is enqueued.
  decltype(answer_task<Completion>(activate)) launch;
  std::unique_ptr<Stream::Task> bring;
  Status begun = guarded(context.node().op(), [&] {
    launch = answer_task<Completion>(activate);
    if (std::ranges::any_of(context.inputs(), [this](const Tensor& input) {
          const Result<bool> elsewhere = is_elsewhere(input);
          return elsewhere.ok() && *elsewhere;
        }))
      bring = Stream::task([this, &context](Stream::Fate fate) {
        if (fate == Stream::Fate::kAbandon || context.cancelled()) return;
        // If this fails, the same error occurs when the kernel's turn comes.
        (void)bring_inputs(context, AcceleratorActivity::Stream::kToDevice)
            .ok();
      });
  });
  if (!begun.ok()) return done(std::move(begun));
  launch->done = std::move(done);
  // Always before the kernel's end: a copy may be using the context.
  if (bring != nullptr) launch->after = to_device_.enqueue(std::move(bring));
  execution_.enqueue(std::move(launch));
}

Status StreamDevice::run(const Kernel& kernel, KernelContext& context) {
  constexpr auto kStream = AcceleratorActivity::Stream::kExecution;
  if (context.cancelled()) return home_.step_cancelled();
  TAGFLOW_RETURN_IF_ERROR(bring_inputs(context, kStream));
  Activity activity(*this, kStream, context.node().name(), 0,
                    context.step().step_id);
  hold_until(activity.start() + options_.launch_latency);
  StepInfo step = context.step();
  step.parallel = nullptr;  // this thread is the device
  KernelContext here(&context.node(), context.mutable_inputs(),
                     context.mutable_outputs(), &step, &context.tag(),
                     allocator_.get());
  TAGFLOW_RETURN_IF_ERROR(run_kernel(kernel, here));
  TAGFLOW_RETURN_IF_ERROR(keep_outputs(context));
  return activity.end();
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
                                  AcceleratorActivity::Stream stream,
                                  uint64_t step) {
  TAGFLOW_ASSIGN(Tensor copied,
                 Tensor::allocate(tensor.dtype(), tensor.shape(), to));
  const size_t bytes = tensor.bytes();
  Activity activity(*this, stream, {}, int64_t(bytes), step);
  if (bytes > 0) std::memcpy(copied.mutable_raw(), tensor.raw(), bytes);
  nanoseconds least = options_.copy_latency;
  if (options_.bandwidth > 0)
    least +=
        nanoseconds(int64_t(double(bytes) * 1e9 / double(options_.bandwidth)));
  hold_until(activity.start() + least);
  TAGFLOW_RETURN_IF_ERROR(activity.end());
  return copied;
}

Status StreamDevice::bring_inputs(KernelContext& context,
                                  AcceleratorActivity::Stream stream) {
  for (Tensor& input : context.mutable_inputs()) {
    TAGFLOW_ASSIGN(const bool elsewhere, is_elsewhere(input));
    if (elsewhere) {
      TAGFLOW_ASSIGN(input,
                     copy(input, *allocator_, stream, context.step().step_id));
    }
  }
  return {};
}

// A CPU kernel may set outputs that its context did not allocate; these are
// copied over, too.
Status StreamDevice::keep_outputs(KernelContext& context) {
  for (Tensor& output : context.mutable_outputs()) {
    TAGFLOW_ASSIGN(const bool elsewhere, is_elsewhere(output));
    if (elsewhere) {
      TAGFLOW_ASSIGN(output, upload(output));
    }
  }
  return {};
}

void StreamDevice::copy_to_host(Tensor tensor, Copied done, uint64_t step) {
  if (host_readable(tensor)) return done(std::move(tensor));
  const Result<bool> elsewhere =
      guarded("stream", [&] { return is_elsewhere(tensor); });
  if (!elsewhere.ok()) return done(elsewhere.status());
  enqueue_copy(to_host_, AcceleratorActivity::Stream::kToHost,
               std::move(tensor), host_allocator(), std::move(done), step);
}

void StreamDevice::copy_from_host(Tensor tensor, Copied done, uint64_t step) {
  const Result<bool> to_copy =
      guarded("stream", [&] { return has_to_come(tensor); });
  if (!to_copy.ok()) return done(to_copy.status());
  if (!*to_copy) return done(std::move(tensor));
  enqueue_copy(to_device_, AcceleratorActivity::Stream::kToDevice,
               std::move(tensor), *allocator_, std::move(done), step);
}

void StreamDevice::enqueue_copy(Stream& stream,
                                AcceleratorActivity::Stream kind, Tensor tensor,
                                Allocator& to, Copied done, uint64_t step) {
  auto activate = [this, kind, step, &to, tensor = std::move(tensor)](
                      Stream::Fate fate, const Copied& tell) mutable {
    if (fate == Stream::Fate::kAbandon) return tell(home_.destroyed());
    Result<Tensor> copied =
        guarded("stream", [&] { return copy(tensor, to, kind, step); });
    tensor.reset();  // the callback may count on its memory
    tell(std::move(copied));
  };
  enqueue_answer(stream, "stream", std::move(done), std::move(activate));
}

Result<Tensor> StreamDevice::upload(const Tensor& tensor) {
  return guarded("stream", [&]() -> Result<Tensor> {
    TAGFLOW_ASSIGN(const bool to_copy, has_to_come(tensor));
    if (!to_copy) return tensor;
    TAGFLOW_ASSIGN(
        Tensor copied,
        Tensor::allocate(tensor.dtype(), tensor.shape(), *allocator_));
    if (tensor.bytes() > 0)
      std::memcpy(copied.mutable_raw(), tensor.raw(), tensor.bytes());
    return copied;
  });
}

nanoseconds StreamDevice::busy(AcceleratorActivity::Stream stream) const {
  return nanoseconds(busy_ns_[size_t(stream)].load(std::memory_order_relaxed));
}

}  // namespace tagflow::devices
