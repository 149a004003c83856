// Barriers: tuples that are inserted part by part, and taken in batches.
#include "devices/state/barrier.h"

#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/variable/state_inputs.h"

namespace tagflow::devices {

namespace {

Result<BarrierSpec> barrier_spec(const KernelInfo& info) {
  BarrierSpec spec;
  spec.types = attr_of<std::vector<DataType>>(info, "component_types");
  const auto shapes = attr_of<std::vector<PartialShape>>(info, "shapes");
  spec.shapes.resize(spec.types.size());
  if (!shapes.empty() && shapes.size() != spec.types.size())
    return invalid_argument("there are {} component types, but {} shapes",
                            spec.types.size(), shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    const PartialShape& shape = shapes[i];
    if (!shape.has_rank()) continue;
    if (!shape.fully_known())
      return invalid_argument(
          "the shape of a component must be known, or not given, not {}",
          shape.to_string());
    TAGFLOW_ASSIGN(const Shape checked, Shape::make(shape.dims()));
    if (checked.num_elements() == 0)
      return invalid_argument("a component must have elements, not shape {}",
                              shape.to_string());
    spec.shapes[i] = shape;
  }
  if (const auto capacity = attr_of<int64_t>(info, "capacity"); capacity != -1)
    return invalid_argument(
        "the capacity must be -1, not {}: a queue in front may limit it",
        capacity);
  return spec;
}

class BarrierKernel final : public CheapKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    Result<BarrierSpec> spec = barrier_spec(info);
    if (!spec.ok()) return spec.status();
    return std::unique_ptr<Kernel>(new BarrierKernel(info, *std::move(spec)));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(
        resource_.set_handle(context, [this]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(
              make_ref_counted<Barrier>(resource_.key().name, spec_));
        }));
    // Another node may have made it.
    const auto* barrier =
        state_object<Barrier>(*context.output(0).data<ResourceHandle>());
    return barrier->spec()
        .check_same(barrier->describe(), spec_)
        .with_prefix(fmt::format("[{}] ", context.node().op()));
  }
  bool is_bookkeeping() const override { return true; }

 private:
  BarrierKernel(const KernelInfo& info, BarrierSpec spec)
      : resource_(info), spec_(std::move(spec)) {}

  const ResourceOp resource_;
  const BarrierSpec spec_;
};

const Barrier& barrier_of(const StateActor& actor) {
  return static_cast<const Barrier&>(actor);
}
Barrier& barrier_of(StateActor& actor) { return static_cast<Barrier&>(actor); }

class BarrierInsertKernel final : public HandleKernel<Barrier> {
 public:
  explicit BarrierInsertKernel(const KernelInfo& info)
      : part_(attr_of<int64_t>(info, "component_index")) {}

  Status check(const KernelContext& context, const StateActor& actor,
               Errand&) const override {
    const Barrier& barrier = barrier_of(actor);
    const BarrierSpec& spec = barrier.spec();
    if (part_ < 0 || size_t(part_) >= spec.types.size())
      return context.fail("{} has {} components, none of index {}",
                          barrier.describe(), spec.types.size(), part_);
    const Tensor& keys = context.input(1);
    const Tensor& values = context.input(2);
    const DataType type = spec.types[size_t(part_)];
    PartialShape wanted{keys.num_elements()};
    const PartialShape& declared = spec.shapes[size_t(part_)];
    if (declared.has_rank()) {
      for (const int64_t dim : declared.dims()) wanted.add_dim(dim);
    } else if (values.rank() > 0) {  // rows of any shape
      for (const int64_t dim : values.shape().dims().subspan(1))
        wanted.add_dim(dim);
    }
    if (keys.rank() != 1 || values.dtype() != type ||
        !wanted.accepts(values.shape()))
      return context.fail("component {} of {} takes {}{} for keys {}, not {}",
                          part_, barrier.describe(), dtype_name(type),
                          wanted.to_string(), keys.describe(),
                          values.describe());
    if (keys.num_elements() > 0 && values.num_elements() == 0)
      return context.fail("component {} of {} must have elements, not be {}",
                          part_, barrier.describe(), values.describe());
    return {};
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    return barrier_of(actor).insert(context, context.input(1), size_t(part_),
                                    context.input(2));
  }

 private:
  const int64_t part_;
};

class BarrierTakeKernel final : public HandleKernel<Barrier> {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    return make_untimed<BarrierTakeKernel>(info);
  }
  explicit BarrierTakeKernel(const KernelInfo& info)
      : allows_less_(attr_of<bool>(info, "allow_small_batch")),
        awaits_incomplete_(attr_of<bool>(info, "wait_for_incomplete")) {}

  std::optional<Line> line() const override { return Line::kOut; }
  Status check(const KernelContext& context, const StateActor& actor,
               Errand& errand) const override {
    const Barrier& barrier = barrier_of(actor);
    const auto& types = context.node().output_dtypes();
    if (!std::equal(types.begin() + 2, types.end(),
                    barrier.spec().types.begin(), barrier.spec().types.end()))
      return context.fail("{} has components of other types",
                          barrier.describe());
    TAGFLOW_ASSIGN(errand.amount, int32_input(context, 1, "num_elements"));
    if (errand.amount < 0)
      return context.fail("num_elements must not be negative, but is {}",
                          errand.amount);
    return {};
  }
  Readiness readiness(const KernelContext&, const StateActor& actor,
                      const Errand& errand) const override {
    const Barrier& barrier = barrier_of(actor);
    const int64_t count = count_of(barrier, errand);
    return barrier.ready() >= count || !may_have(barrier, count)
               ? Readiness::kWhole
               : Readiness::kNotYet;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand& errand) const override {
    Barrier& barrier = barrier_of(actor);
    const int64_t count = count_of(barrier, errand);
    if (barrier.ready() < count || (count == 0 && errand.amount > 0))
      return error(Code::kOutOfRange,
                   "[{}] {} is closed and has insufficient elements "
                   "(requested {}, total size {})",
                   context.node().op(), barrier.describe(), errand.amount,
                   barrier.ready() + barrier.incomplete());
    return barrier.take(context, count);
  }

 private:
  // The number of tuples that a closed barrier has, or may have. A take that is
  // content with less waits for incomplete ones only if it says so.
  int64_t rest(const Barrier& barrier) const {
    const bool waits = !allows_less_ || awaits_incomplete_;
    return barrier.ready() + (waits ? barrier.incomplete() : 0);
  }
  // The number of tuples to take.
  int64_t count_of(const Barrier& barrier, const Errand& errand) const {
    return barrier.is_closed() && allows_less_
               ? std::min(errand.amount, rest(barrier))
               : errand.amount;
  }
  bool may_have(const Barrier& barrier, int64_t count) const {
    return !barrier.is_closed() || rest(barrier) >= count;
  }

  const bool allows_less_;
  const bool awaits_incomplete_;
};

class BarrierCloseKernel final : public HandleKernel<Barrier> {
 public:
  explicit BarrierCloseKernel(const KernelInfo& info)
      : drops_(attr_of<bool>(info, "cancel_pending_enqueues")) {}
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    Barrier& barrier = barrier_of(actor);
    if (barrier.is_closed() && (barrier.drops_incomplete() || !drops_))
      return error(Code::kCancelled, "[{}] {} is already closed",
                   context.node().op(), barrier.describe());
    barrier.close(drops_);
    return {};
  }

 private:
  const bool drops_;
};

template <bool kIsReady>
class BarrierSizeKernel final : public CheapKernel {
 public:
  explicit BarrierSizeKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Barrier * barrier, handle_input<Barrier>(context, 0));
    TAGFLOW_RETURN_IF_ERROR(barrier->ended());
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    const int64_t size = kIsReady ? barrier->ready() : barrier->incomplete();
    context.set_output(0, Tensor::scalar(int32_t(std::min(size, kMost))));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

}  // namespace

void register_barrier_kernels(KernelRegistry& registry) {
  registry.add<BarrierKernel>("Barrier");
  registry.add<BarrierInsertKernel>("BarrierInsertMany");
  registry.add<BarrierTakeKernel>("BarrierTakeMany");
  registry.add<BarrierCloseKernel>("BarrierClose");
  registry.add<BarrierSizeKernel<true>>("BarrierReadySize");
  registry.add<BarrierSizeKernel<false>>("BarrierIncompleteSize");
}

}  // namespace tagflow::devices
