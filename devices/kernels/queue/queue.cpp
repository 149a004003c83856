// Queues: creation, enqueue, dequeue, close. The ops of both versions have the
// same kernels: a reference to a queue is its handle.
#include "devices/state/queue.h"

#include <algorithm>

#include "devices/kernels/containers/values.h"
#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

namespace {

// --- Creation ---------------------------------------------------------------

class QueueKernel final : public CheapKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    Result<QueueSpec> spec = QueueSpec::make(info);
    if (!spec.ok()) return spec.status();
    return std::unique_ptr<Kernel>(new QueueKernel(info, *std::move(spec)));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(
        resource_.set_handle(context, [&]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(make_ref_counted<Queue>(
              resource_.is_anonymous() ? "" : resource_.key().name, spec_,
              context.step().seed));
        }));
    // Another node may have made it.
    const auto* queue =
        state_object<Queue>(*context.output(0).data<ResourceHandle>());
    return queue->spec()
        .check_same(queue->describe(), spec_)
        .with_prefix(fmt::format("[{}] ", context.node().op()));
  }
  bool is_bookkeeping() const override { return true; }

 private:
  QueueKernel(const KernelInfo& info, QueueSpec spec)
      : resource_(info), spec_(std::move(spec)) {}

  const ResourceOp resource_;
  const QueueSpec spec_;
};

class FakeQueueKernel final : public CheapKernel {
 public:
  explicit FakeQueueKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(handle_input<Queue>(context, 0).status());
    context.set_output(0, context.input(0));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

// --- Enqueue ----------------------------------------------------------------

Status is_closed(const KernelContext& context, const Queue& queue) {
  return error(Code::kCancelled, "[{}] {} is closed", context.node().op(),
               queue.describe());
}

const Queue& queue_of(const StateActor& actor) {
  return static_cast<const Queue&>(actor);
}
Queue& queue_of(StateActor& actor) { return static_cast<Queue&>(actor); }

class EnqueueKernel final : public HandleKernel<Queue> {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return make_untimed<EnqueueKernel>(info);
  }
  explicit EnqueueKernel(const KernelInfo&) {}

  std::optional<Line> line() const override { return Line::kIn; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand&) const override {
    return queue_of(actor).check_values(context, context.inputs().subspan(1),
                                        false);
  }
  Readiness readiness(const KernelContext&, const StateActor& actor,
                      const Errand&) const override {
    const Queue& queue = queue_of(actor);
    return queue.is_closed() || queue.space() > 0 ? Readiness::kWhole
                                                  : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    Queue& queue = queue_of(actor);
    if (queue.is_closed()) return is_closed(context, queue);
    return queue.put(context, context.inputs().subspan(1));
  }
};

// If there is not enough space, rows are put in bit by bit.
class EnqueueManyKernel final : public HandleKernel<Queue> {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return make_untimed<EnqueueManyKernel>(info);
  }
  explicit EnqueueManyKernel(const KernelInfo&) {}

  std::optional<Line> line() const override { return Line::kIn; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand& errand) const override {
    TAGFLOW_RETURN_IF_ERROR(queue_of(actor).check_values(
        context, context.inputs().subspan(1), true));
    errand.amount = context.input(1).dim(0);
    return {};
  }
  Readiness readiness(const KernelContext&, const StateActor& actor,
                      const Errand& errand) const override {
    const Queue& queue = queue_of(actor);
    const int64_t space = queue.space();
    if (queue.is_closed() || space >= errand.amount - errand.done)
      return Readiness::kWhole;
    return space > 0 ? Readiness::kPart : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand& errand) const override {
    Queue& queue = queue_of(actor);
    if (errand.amount == 0) return {};
    if (queue.is_closed()) return is_closed(context, queue);
    const int64_t end =
        errand.done +
        std::clamp<int64_t>(queue.space(), 0, errand.amount - errand.done);
    TAGFLOW_RETURN_IF_ERROR(
        queue.put_rows(context, context.inputs().subspan(1), errand.done, end));
    errand.done = end;
    return {};
  }
};

// --- Dequeue ----------------------------------------------------------------

enum class Dequeue : uint8_t { kOne, kMany, kUpTo };

template <Dequeue kWhat>
class DequeueKernel final : public HandleKernel<Queue> {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return make_untimed<DequeueKernel>(info);
  }
  explicit DequeueKernel(const KernelInfo& info) {
    for (int i = 0; i < info.num_outputs(); ++i)
      types_.push_back(info.output_dtype(i));
  }

  std::optional<Line> line() const override { return Line::kOut; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand& errand) const override {
    const Queue& queue = queue_of(actor);
    TAGFLOW_RETURN_IF_ERROR(check_types(context, queue));
    if constexpr (kWhat == Dequeue::kOne) return {};
    if (queue.spec().shapes.empty())
      return context.fail(
          "{} does not specify the shapes of its components, so its elements "
          "cannot be batched",
          queue.describe());
    TAGFLOW_ASSIGN(errand.amount, int32_input(context, 1, "n"));
    if (errand.amount < 0)
      return context.fail("n must not be negative, but is {}", errand.amount);
    return {};
  }
  Readiness readiness(const KernelContext&, const StateActor& actor,
                      const Errand& errand) const override {
    const Queue& queue = queue_of(actor);
    return queue.is_closed() || queue.available() >= errand.amount
               ? Readiness::kWhole
               : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand& errand) const override {
    Queue& queue = queue_of(actor);
    int64_t count = errand.amount;
    if (const int64_t there = queue.available(); there < count) {
      if (kWhat != Dequeue::kUpTo || there == 0)
        return error(Code::kOutOfRange,
                     "[{}] {} is closed and has insufficient elements "
                     "(requested {}, current size {})",
                     context.node().op(), queue.describe(), count, there);
      count = there;
    }
    if constexpr (kWhat != Dequeue::kOne)
      return queue.take_many(context, count);
    queue.take(context);
    return {};
  }

 private:
  Status check_types(const KernelContext& context, const Queue& queue) const {
    const std::vector<DataType>& types = queue.spec().types;
    if (types == types_) [[likely]]
      return {};
    if (types.size() != types_.size())
      return context.fail("elements of {} have {} components, not {}",
                          queue.describe(), types.size(), types_.size());
    const size_t i =
        size_t(std::ranges::mismatch(types, types_).in1 - types.begin());
    return context.fail("component {} of {} is of {}, not of {}", i,
                        queue.describe(), dtype_name(types[i]),
                        dtype_name(types_[i]));
  }

  std::vector<DataType> types_;
};

// --- Close, size ------------------------------------------------------------

class CloseKernel final : public HandleKernel<Queue> {
 public:
  explicit CloseKernel(const KernelInfo& info)
      : cancels_(attr_of<bool>(info, "cancel_pending_enqueues")) {}

  // Waiting enqueues come before it, or are cancelled.
  std::optional<Line> line() const override {
    return cancels_ ? std::nullopt : std::optional(Line::kIn);
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    Queue& queue = queue_of(actor);
    if (queue.is_closed() && !cancels_)
      return error(Code::kCancelled, "[{}] {} is already closed",
                   context.node().op(), queue.describe());
    queue.close();
    if (cancels_)
      queue.end_line(Line::kIn,
                     error(Code::kCancelled,
                           "[{}] {} was closed, which cancelled waiting "
                           "enqueues",
                           context.node().op(), queue.describe()));
    return {};
  }

 private:
  const bool cancels_;
};

class QueueSizeKernel final : public CheapKernel {
 public:
  explicit QueueSizeKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Queue * queue, handle_input<Queue>(context, 0));
    TAGFLOW_RETURN_IF_ERROR(queue->ended());
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    context.set_output(0,
                       Tensor::scalar(int32_t(std::min(queue->size(), kMost))));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

class QueueIsClosedKernel final : public CheapKernel {
 public:
  explicit QueueIsClosedKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Queue * queue, handle_input<Queue>(context, 0));
    TAGFLOW_RETURN_IF_ERROR(queue->ended());
    context.set_output(0, Tensor::scalar(queue->is_closed()));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

}  // namespace

void register_queue_op_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"})
    add_both<QueueKernel>(registry, op);
  registry.add<FakeQueueKernel>("FakeQueue");
  add_both<EnqueueKernel>(registry, "QueueEnqueue");
  add_both<EnqueueManyKernel>(registry, "QueueEnqueueMany");
  add_both<DequeueKernel<Dequeue::kOne>>(registry, "QueueDequeue");
  add_both<DequeueKernel<Dequeue::kMany>>(registry, "QueueDequeueMany");
  add_both<DequeueKernel<Dequeue::kUpTo>>(registry, "QueueDequeueUpTo");
  add_both<CloseKernel>(registry, "QueueClose");
  add_both<QueueSizeKernel>(registry, "QueueSize");
  add_both<QueueIsClosedKernel>(registry, "QueueIsClosed");
}

}  // namespace tagflow::devices
