#include "devices/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <optional>
#include <utility>

#include "devices/cuda/operands.h"
#include "devices/cuda/status.h"
#include "devices/state/guard.h"
#include "devices/tracking_allocator.h"

namespace tagflow::devices {
namespace {

constexpr size_t kSmallInputBytes = size_t(1) << 20;
constexpr size_t kArrivingBytes = size_t(16) << 20;
constexpr size_t kDepartingBytes = size_t(8) << 20;

// Calls f with another memory in the context, and without other workers.
template <class F>
Status with_memory(KernelContext& context, Allocator& allocator, F&& f,
                   bool may_forward = true) {
  StepInfo step = context.step();
  step.parallel = nullptr;
  step.forward_buffers = step.forward_buffers && may_forward;
  KernelContext here(&context.node(), context.mutable_inputs(),
                     context.mutable_outputs(), &step, &context.tag(),
                     &allocator);
  return guarded(context.node().op(), [&] { return f(here); });
}

}  // namespace

CudaDevice::CudaDevice(graph::DeviceInfo info, CudaMemory::Owner memory)
    : Device(std::move(info)),
      memory_(std::move(memory)),
      swapper_(std::make_shared<Swapper>(*this, memory_->ledger(),
                                         this->info().memory_limit)),
      home_("cuda", this->info().name.to_string(), *memory_),
      stopwatch_(memory_->device()),
      mover_(*memory_) {
  memory_->swap_by(swapper_);
}

CudaDevice::~CudaDevice() {
  swapper_->close();
  // None is destroyed before the last callback, which may use any of them.
  // Launches wait for copies to the device: if their thread ended first, a
  // callback on the copies' thread, which may launch, would wait for itself.
  to_device_.stop();
  to_device_.join();
  for (Stream* stream : {&launching_, &to_host_}) stream->stop();
  for (Stream* stream : {&launching_, &to_host_}) stream->join();
  const OnDevice on(memory_->device());
  // Nothing may use the pinned memory any more when it is freed.
  (void)memory_->compute().drain().ok();
  (void)memory_->arrivals().drain().ok();
  if (departures_ != nullptr) (void)departures_->drain().ok();
  departures_.reset();  // while the GPU is the thread's current one
}

Status CudaDevice::open() {
  const OnDevice on(memory_->device());
  TAGFLOW_ASSIGN(departures_, CudaLane::make(2));
  TAGFLOW_ASSIGN(PinnedBlock small, PinnedBlock::make(kSmallInputBytes));
  TAGFLOW_ASSIGN(PinnedBlock arriving, PinnedBlock::make(kArrivingBytes));
  TAGFLOW_ASSIGN(departing_, PinnedBlock::make(kDepartingBytes));
  small_inputs_ =
      std::make_unique<PinnedRing>(std::move(small), memory_->compute());
  arriving_ =
      std::make_unique<PinnedRing>(std::move(arriving), memory_->arrivals());
  const auto use_device = [device = memory_->device()](Stream::Fate) {
    cudaSetDevice(device);
  };
  for (Stream* stream : {&launching_, &to_device_, &to_host_})
    stream->enqueue(use_device);
  const auto let_wait = [](Stream& stream, Swapper::Waits waits) {
    stream.enqueue([waits](Stream::Fate) { Swapper::set_thread_waits(waits); });
  };
  let_wait(launching_, Swapper::Waits::kForAll);
  let_wait(to_device_, Swapper::Waits::kForLeaving);
  return {};
}

// --- Launches ---------------------------------------------------------------

// Calls go_on(), which either passes `done` on and returns OK, or leaves it:
// then its error or exception is answered here.
template <class F>
void CudaDevice::step(const KernelContext& context, Completion& done,
                      F&& go_on) {
  Status status = guarded(context.node().op(), std::forward<F>(go_on));
  if (!status.ok()) std::exchange(done, nullptr)(std::move(status));
}

void CudaDevice::launch(const Kernel& kernel, KernelContext& context,
                        Completion done) {
  const auto& cuda = static_cast<const CudaKernel&>(kernel);
  step(context, done, [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(usable());
    for (int i = 0; i < context.num_inputs(); ++i)
      if (cuda.steers(i) && !host_readable(context.input(i)))
        return fetch_steering(cuda, context, done);
    return begin(cuda, context, done);
  });
}

Status CudaDevice::fetch_steering(const CudaKernel& kernel,
                                  KernelContext& context, Completion& done) {
  auto task = answer_task<Completion>(
      [this, &kernel, &context](Stream::Fate fate, Completion& tell) {
        step(context, tell, [&]() -> Status {
          if (fate == Stream::Fate::kAbandon) return home_.destroyed();
          if (context.cancelled()) return home_.step_cancelled();
          for (int i = 0; i < context.num_inputs(); ++i) {
            Tensor& input = context.mutable_inputs()[size_t(i)];
            if (!kernel.steers(i) || host_readable(input)) continue;
            TAGFLOW_RETURN_IF_ERROR(home_.is_elsewhere(input).status());
            TAGFLOW_ASSIGN(input, fetch(input, context.step().step_id));
          }
          return begin(kernel, context, tell);
        });
      });
  task->done = std::move(done);
  to_host_.enqueue(std::move(task));
  return {};
}

// Host inputs that are too large to be sent with the launch are copied on the
// other stream, while earlier launches continue.
Status CudaDevice::begin(const CudaKernel& kernel, KernelContext& context,
                         Completion& done) {
  const bool on_host = kernel.runs() == CudaKernel::Runs::kOnHost;
  if (on_host || std::ranges::all_of(context.inputs(), is_small_value)) {
    Status status = compute_on_host(kernel, context);
    if (on_host || status.code() != Code::kResourceExhausted) {
      TAGFLOW_RETURN_IF_ERROR(std::move(status));
      return finish_on_host(context, done);
    }
  }
  TAGFLOW_RETURN_IF_ERROR(kernel.check(context));
  const auto is_large = [this, &kernel, &context](int i) {
    const Tensor& input = context.input(i);
    return !kernel.steers(i) && is_plain(input.dtype()) &&
           host_readable(input) && input.bytes() > small_inputs_->largest();
  };
  bool any_large = false;
  for (int i = 0; i < context.num_inputs(); ++i)
    any_large = any_large || is_large(i);
  // Everything that it needs is allocated before anything is enqueued.
  auto launch = answer_task<Completion>(
      [this, &kernel, &context](Stream::Fate fate, Completion& tell) {
        Status status = guarded(context.node().op(), [&]() -> Status {
          if (fate == Stream::Fate::kAbandon) return home_.destroyed();
          return checked(run(kernel, context));
        });
        tell(std::move(status));
      });
  std::unique_ptr<Stream::Task> bring;
  if (any_large)
    bring = Stream::task([this, is_large, &context](Stream::Fate fate) {
      if (fate == Stream::Fate::kAbandon || context.cancelled()) return;
      // If memory is short, the input is copied at the launch's turn.
      for (int i = 0; i < context.num_inputs(); ++i) {
        if (!is_large(i)) continue;
        Tensor& input = context.mutable_inputs()[size_t(i)];
        Result<Tensor> sent = send(input, context.step().step_id);
        if (sent.ok()) input = std::move(*sent);
      }
    });
  launch->done = std::move(done);
  // Always before the kernel's end: a copy may be using the context.
  if (bring != nullptr) launch->after = to_device_.enqueue(std::move(bring));
  launching_.enqueue(std::move(launch));
  return {};
}

// ResourceExhausted if it must run on the GPU after all, since results are not
// as small as the inputs. Nothing is written in place before that is known.
Status CudaDevice::compute_on_host(const CudaKernel& kernel,
                                   KernelContext& context) {
  constexpr int64_t kMostBytes = 1024;
  if (context.cancelled()) return home_.step_cancelled();
  const auto compute = [&](KernelContext& here) {
    return run_kernel(kernel.inner(), here);
  };
  if (kernel.runs() == CudaKernel::Runs::kOnHost)
    return with_memory(context, host_allocator(), compute);
  const auto small = TrackingAllocator::make({"small values", kMostBytes});
  return with_memory(context, *small, compute, false);
}

// Results that are not small values belong in the GPU's memory.
Status CudaDevice::finish_on_host(KernelContext& context, Completion& done) {
  const auto is_large = [this](const Tensor& output) {
    const Result<bool> comes = has_to_come(output);
    return comes.ok() && *comes;
  };
  if (std::ranges::none_of(context.mutable_outputs(), is_large)) {
    std::exchange(done, nullptr)(Status());
    return {};
  }
  auto task = answer_task<Completion>(
      [this, &context, is_large](Stream::Fate fate, Completion& tell) {
        Status status = guarded(context.node().op(), [&]() -> Status {
          if (fate == Stream::Fate::kAbandon) return home_.destroyed();
          for (Tensor& output : context.mutable_outputs())
            if (is_large(output)) {
              TAGFLOW_ASSIGN(output, send(output, context.step().step_id));
            }
          return {};
        });
        tell(std::move(status));
      });
  task->done = std::move(done);
  to_device_.enqueue(std::move(task));
  return {};
}

Status CudaDevice::run(const CudaKernel& kernel, KernelContext& context) {
  TAGFLOW_RETURN_IF_ERROR(usable());
  if (context.cancelled()) return home_.step_cancelled();
  cudaGetLastError();  // an earlier error is not this launch's
  for (int i = 0; i < context.num_inputs(); ++i) {
    Tensor& input = context.mutable_inputs()[size_t(i)];
    if (kernel.steers(i)) continue;
    TAGFLOW_ASSIGN(const bool elsewhere, home_.is_elsewhere(input));
    const bool may_stay = (kernel.takes_values() && fits_operand(input)) ||
                          (kernel.hands_on() && is_small_value(input));
    if (elsewhere && !may_stay)
      TAGFLOW_RETURN_IF_ERROR(stage(input, context.step().step_id));
    TAGFLOW_RETURN_IF_ERROR(
        memory_->hold_for(input, memory_->compute().stream()));
  }
  Status status =
      guarded(context.node().op(), [&] { return enqueue(kernel, context); });
  // A value taken from a container may still be arriving.
  for (const Tensor& output : context.mutable_outputs())
    if (status.ok())
      status = memory_->hold_for(output, memory_->compute().stream());
  // Also after an error, which may come when part was enqueued.
  TAGFLOW_ASSIGN(const uint64_t ticket, memory_->compute().record());
  small_inputs_->close(ticket);
  TAGFLOW_RETURN_IF_ERROR(std::move(status));
  for (const Tensor& output : context.mutable_outputs())
    if (memory_->holds(output))
      memory_->note_ready(output, memory_->compute(), ticket);
  stopwatch_.tell();
  return {};
}

Status CudaDevice::enqueue(const CudaKernel& kernel, KernelContext& context) {
  const bool by_mover = kernel.runs() == CudaKernel::Runs::kByMover;
  Allocator& allocator = by_mover ? static_cast<Allocator&>(mover_) : *memory_;
  const CudaStopwatch::Lap lap(
      stopwatch_, AcceleratorActivity::Stream::kExecution,
      memory_->compute().stream(), context.node().name(), 0,
      context.step().step_id);
  Status status = with_memory(context, allocator, [&](KernelContext& here) {
    return kernel.enqueue(here, memory_->compute().stream());
  });
  Status moved = mover_.take_error();
  TAGFLOW_RETURN_IF_ERROR(std::move(status));
  return moved;
}

// Replaces a host tensor by a copy in the order of launches; a tensor that is
// too large for that had no memory earlier, and is allocated now.
Status CudaDevice::stage(Tensor& input, uint64_t step) {
  TAGFLOW_ASSIGN(Tensor copy,
                 Tensor::allocate(input.dtype(), input.shape(), *memory_));
  const cudaStream_t stream = memory_->compute().stream();
  const CudaStopwatch::Lap lap(stopwatch_,
                               AcceleratorActivity::Stream::kExecution, stream,
                               {}, int64_t(input.bytes()), step);
  const auto* from = static_cast<const std::byte*>(input.raw());
  auto* to = static_cast<std::byte*>(copy.mutable_raw());
  for (size_t done = 0; done < input.bytes();) {
    if (small_inputs_->crowded()) {
      TAGFLOW_ASSIGN(const uint64_t ticket, memory_->compute().record());
      small_inputs_->close(ticket);
    }
    const size_t part =
        std::min(input.bytes() - done, small_inputs_->largest());
    TAGFLOW_ASSIGN(std::byte * pinned, small_inputs_->take(part));
    std::memcpy(pinned, from + done, part);
    TAGFLOW_RETURN_IF_ERROR(
        cuda_status(cudaMemcpyAsync(to + done, pinned, part,
                                    cudaMemcpyHostToDevice, stream),
                    "copying from the host"));
    done += part;
  }
  input = std::move(copy);
  return {};
}

// --- Copies -----------------------------------------------------------------

Result<bool> CudaDevice::has_to_come(const Tensor& tensor) const {
  if (!tensor.valid() || is_small_value(tensor)) return false;
  return home_.has_to_come(tensor);
}

// Runs one of the copies below, through copied(), on the stream's thread.
template <class F>
void CudaDevice::enqueue_copy(Stream& stream, Copied done, F copied) {
  auto activate = [this, copied = std::move(copied)](
                      Stream::Fate fate, const Copied& tell) mutable {
    if (fate == Stream::Fate::kAbandon) return tell(home_.destroyed());
    tell(guarded("cuda", std::move(copied)));
  };
  enqueue_answer(stream, "cuda", std::move(done), std::move(activate));
}

void CudaDevice::copy_to_host(Tensor tensor, Copied done, uint64_t step) {
  if (host_readable(tensor)) return done(std::move(tensor));
  Status begun = guarded("cuda", [&]() -> Status {
    TAGFLOW_RETURN_IF_ERROR(usable());
    return home_.is_elsewhere(tensor).status();
  });
  if (!begun.ok()) return done(std::move(begun));
  enqueue_copy(to_host_, std::move(done),
               [this, step, tensor = std::move(tensor)]() mutable {
                 // The callback may count on the memory being freed.
                 const Tensor gone = std::move(tensor);
                 return fetch(gone, step);
               });
}

void CudaDevice::copy_from_host(Tensor tensor, Copied done, uint64_t step) {
  const Result<bool> comes = guarded("cuda", [&]() -> Result<bool> {
    TAGFLOW_RETURN_IF_ERROR(usable());
    return has_to_come(tensor);
  });
  if (!comes.ok()) return done(comes.status());
  if (!*comes) return done(std::move(tensor));
  enqueue_copy(to_device_, std::move(done),
               [this, step, tensor = std::move(tensor)]() mutable {
                 const Tensor gone = std::move(tensor);
                 return send(gone, step);
               });
}

Result<Tensor> CudaDevice::upload(const Tensor& tensor) {
  std::promise<Result<Tensor>> answer;
  copy_from_host(tensor, [&answer](Result<Tensor> sent) {
    answer.set_value(std::move(sent));
  });
  return answer.get_future().get();
}

Result<Tensor> CudaDevice::send(const Tensor& tensor, uint64_t step) {
  TAGFLOW_RETURN_IF_ERROR(usable());
  Result<Tensor> allocated =
      Tensor::allocate(tensor.dtype(), tensor.shape(), memory_->for_arrivals());
  // A GPU that has failed cannot allocate, either.
  if (!allocated.ok()) return checked(allocated.status());
  Tensor copy = std::move(*allocated);
  CudaLane& lane = memory_->arrivals();
  const auto* from = static_cast<const std::byte*>(tensor.raw());
  auto* to = static_cast<std::byte*>(copy.mutable_raw());
  const size_t bytes = tensor.bytes();
  std::optional<CudaStopwatch::Lap> lap;
  lap.emplace(stopwatch_, AcceleratorActivity::Stream::kToDevice, lane.stream(),
              std::string_view(), int64_t(bytes), step);
  for (size_t done = 0; done < bytes;) {
    const size_t part = std::min(bytes - done, arriving_->largest());
    const Result<std::byte*> pinned = arriving_->take(part);
    if (!pinned.ok()) return checked(pinned.status());
    std::memcpy(*pinned, from + done, part);
    TAGFLOW_RETURN_IF_ERROR(checked(
        cuda_status(cudaMemcpyAsync(to + done, *pinned, part,
                                    cudaMemcpyHostToDevice, lane.stream()),
                    "copying from the host")));
    // Before the ticket that others wait for.
    if (done + part == bytes) lap.reset();
    const Result<uint64_t> ticket = lane.record();
    if (!ticket.ok()) return checked(ticket.status());
    arriving_->close(*ticket);
    memory_->note_ready(copy, lane, *ticket);
    done += part;
  }
  return copy;
}

// Uses the two halves of the pinned memory in turn: while the GPU fills one,
// the other is emptied.
Result<Tensor> CudaDevice::fetch(const Tensor& tensor, uint64_t step) {
  TAGFLOW_RETURN_IF_ERROR(usable());
  TAGFLOW_ASSIGN(Tensor copy, Tensor::allocate(tensor.dtype(), tensor.shape()));
  const size_t bytes = tensor.bytes();
  const size_t half = departing_.size() / 2;
  const auto* from = static_cast<const std::byte*>(tensor.raw());
  auto* to = static_cast<std::byte*>(copy.mutable_raw());
  const auto piece = [&](size_t i) { return departing_.data() + i % 2 * half; };
  const size_t pieces = (bytes + half - 1) / half;
  uint64_t before = 0;  // the previous piece's ticket
  TAGFLOW_RETURN_IF_ERROR(
      checked(memory_->hold_for(tensor, departures_->stream())));
  std::optional<CudaStopwatch::Lap> lap;
  lap.emplace(stopwatch_, AcceleratorActivity::Stream::kToHost,
              departures_->stream(), std::string_view(), int64_t(bytes), step);
  for (size_t i = 0; i <= pieces; ++i) {
    uint64_t ticket = 0;
    if (i < pieces) {
      TAGFLOW_RETURN_IF_ERROR(checked(cuda_status(
          cudaMemcpyAsync(piece(i), from + i * half,
                          std::min(half, bytes - i * half),
                          cudaMemcpyDeviceToHost, departures_->stream()),
          "copying to the host")));
      if (i + 1 == pieces) lap.reset();  // before the last ticket
      const Result<uint64_t> recorded = departures_->record();
      if (!recorded.ok()) return checked(recorded.status());
      ticket = *recorded;
    }
    if (i > 0) {
      TAGFLOW_RETURN_IF_ERROR(checked(departures_->wait(before)));
      const size_t begin = (i - 1) * half;
      std::memcpy(to + begin, piece(i - 1), std::min(half, bytes - begin));
    }
    before = ticket;
  }
  stopwatch_.tell();
  return copy;
}

// --- Failures ---------------------------------------------------------------

Status CudaDevice::usable() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(failure_mutex_);
  return failure_;
}

// CUDA repeats an error forever if the GPU does not recover from it.
Status CudaDevice::checked(Status status) {
  if (status.ok()) return status;
  const cudaError_t state = cudaStreamQuery(memory_->compute().stream());
  if (state == cudaSuccess || state == cudaErrorNotReady) {
    cudaGetLastError();
    return status;
  }
  std::lock_guard lock(failure_mutex_);
  if (!failed_.load(std::memory_order_relaxed)) {
    failure_ = cuda_status(state, info().name.to_string() + " has failed");
    failed_.store(true, std::memory_order_release);
  }
  return failure_;
}

}  // namespace tagflow::devices
