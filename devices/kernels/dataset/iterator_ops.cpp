// Iterators: their creation, initialisation and handles, and IteratorGetNext.
#include "devices/counted_growth.h"
#include "devices/kernels/containers/optional.h"
#include "devices/kernels/dataset/element_answer.h"
#include "devices/kernels/dataset/function_call.h"
#include "devices/kernels/dataset/iterator.h"
#include "devices/state/handle_input.h"
#include "devices/state/resource_op.h"
#include "devices/state/state_kind.h"

namespace tagflow::devices {

namespace {

Status of_op(const KernelContext& context, Status status) {
  return std::move(status).with_prefix(
      fmt::format("[{}] ", context.node().op()));
}

// Replaces the pipeline by that of start(), as one effect of the run. What was
// replaced ends behind the effect, since that may take long.
template <class Start>
Status replace(KernelContext& context, Iterator& iterator, const Start& start) {
  std::shared_ptr<RunningPipeline> before;
  {
    const Commit commit = context.commit();
    if (!commit) return error(Code::kCancelled, "the run was answered before");
    auto started = start();
    if (!started.ok()) return of_op(context, std::move(started).status());
    before = *std::move(started);
  }
  return of_op(context, iterator.end_replaced(before));
}

// --- Creation ---------------------------------------------------------------

class IteratorKernel : public CheapKernel {
 public:
  explicit IteratorKernel(const KernelInfo& info)
      : resource_(info), spec_(element_spec(info)) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(resource_.set_handle(
        context, [&]() -> Result<Ref<StateObject>> { return make(context); }));
    // A deleter, which older versions of TensorFlow need.
    return context.num_outputs() > 1 ? context.allocate_output(1, {}).status()
                                     : Status();
  }
  bool is_bookkeeping() const final { return true; }

 protected:
  virtual Result<Ref<StateObject>> make(const KernelContext&) const {
    return Ref<StateObject>(new_iterator());
  }
  Ref<Iterator> new_iterator() const {
    return make_ref_counted<Iterator>(spec_);
  }
  const ElementSpec& spec() const { return spec_; }

 private:
  const ResourceOp resource_;
  const ElementSpec spec_;
};

// The elements of the dataset that a function without arguments makes.
class FactoryStage final : public Stage {
 public:
  FactoryStage(Segment& segment, const Dataset& self, StageFunction function)
      : segment_(segment), self_(&self), function_(std::move(function)) {}

  Progress next(Pull& pull) override {
    if (stage_ != nullptr) return stage_->next(pull);
    if (call_ == nullptr) call_ = function_({});
    if (!call_->is_done()) return Progress::kWait;
    Status status = start(std::exchange(call_, nullptr)->take());
    if (!status.ok())
      return pull.fail(std::move(status).with_prefix(self_->prefix()));
    return stage_->next(pull);
  }

 private:
  Status start(const Result<Element>& answer) {
    TAGFLOW_RETURN_IF_ERROR(answer.status());
    if (answer->size() != 1)
      return invalid_argument("the function must return one dataset");
    TAGFLOW_ASSIGN(const DatasetRef dataset,
                   dataset_of((*answer)[0], "the result of the function"));
    TAGFLOW_RETURN_IF_ERROR(
        self_->spec().check(dataset->spec(), dataset->describe()));
    const Segment::Depth here(segment_, depth_);
    TAGFLOW_ASSIGN(stage_, dataset->start(segment_));
    return {};
  }

  Segment& segment_;
  const int depth_ = segment_.depth();
  const DatasetRef self_;
  const StageFunction function_;
  CallPtr call_;
  StagePtr stage_;
};

class OneShotIteratorKernel final : public IteratorKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(FunctionRef factory,
                   info.attr<FunctionRef>("dataset_factory"));
    return std::unique_ptr<Kernel>(
        new OneShotIteratorKernel(info, std::move(factory)));
  }

 private:
  OneShotIteratorKernel(const KernelInfo& info, FunctionRef factory)
      : IteratorKernel(info), factory_(std::move(factory)) {}

  Result<Ref<StateObject>> make(const KernelContext& context) const override {
    const CapturedFunction factory = captured_function(context, factory_);
    DatasetParts parts{
        kUnknownCardinality,
        [factory](Segment& segment, const Dataset& self) -> Result<StagePtr> {
          TAGFLOW_ASSIGN(StageFunction function,
                         StageFunction::make(segment, factory, 0));
          return StagePtr(std::make_unique<FactoryStage>(segment, self,
                                                         std::move(function)));
        }};
    const auto dataset = make_ref_counted<Dataset>(
        context.node().op(), context.node().name(), spec(), std::move(parts));
    Ref<Iterator> iterator = new_iterator();
    TAGFLOW_RETURN_IF_ERROR(
        iterator->start(context, DatasetRef(dataset)).status());
    return Ref<StateObject>(std::move(iterator));
  }

  const FunctionRef factory_;
};

class MakeIteratorKernel final : public CheapKernel {
 public:
  explicit MakeIteratorKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    Result<DatasetRef> dataset = dataset_of(context.input(0), "input 0");
    if (!dataset.ok()) return of_op(context, std::move(dataset).status());
    TAGFLOW_ASSIGN(Iterator * iterator, handle_input<Iterator>(context, 1));
    return replace(context, *iterator, [&] {
      return iterator->start(context, *std::move(dataset));
    });
  }
  bool is_bookkeeping() const override { return true; }
};

// --- Elements ---------------------------------------------------------------

class OptionalRequest final : public WaitingKernel {
 public:
  using WaitingKernel::WaitingKernel;

 private:
  Status take(Progress progress, Pull& pull) override {
    if (progress == Progress::kFailed) return with_op(pull.error);
    if (progress == Progress::kEnd)
      return new_value_output<Optional>(context(), 0).status();
    if (Status status = spec().check(pull.element); !status.ok())
      return with_op(std::move(status));
    return new_value_output<Optional>(context(), 0, std::move(pull.element))
        .status();
  }
};

template <class Request>
class GetNextKernel final : public AsyncKernel {
 public:
  explicit GetNextKernel(const KernelInfo& info) : spec_(element_spec(info)) {}

  void compute_async(KernelContext& context, Completion done) const override {
    Result<std::shared_ptr<RunningPipeline>> pipeline = find(context);
    if (!pipeline.ok()) return done(std::move(pipeline).status());
    (*pipeline)->ask(
        std::make_shared<Request>(context, std::move(done), spec_));
  }
  bool is_bookkeeping() const override { return true; }

  std::string describe_wait(const KernelContext& context) const override {
    const auto iterator = handle_input<Iterator>(context, 0);
    return iterator.ok() ? fmt::format("{} makes its next element",
                                       (*iterator)->describe())
                         : std::string();
  }

 private:
  Result<std::shared_ptr<RunningPipeline>> find(
      const KernelContext& context) const {
    TAGFLOW_ASSIGN(const Iterator* iterator,
                   handle_input<Iterator>(context, 0));
    TAGFLOW_RETURN_IF_ERROR(of_op(context, iterator->ended()));
    TAGFLOW_RETURN_IF_ERROR(
        of_op(context, spec_.check(iterator->spec(), iterator->describe())));
    auto pipeline = iterator->pipeline();
    if (pipeline == nullptr) return of_op(context, iterator->not_initialised());
    return pipeline;
  }

  const ElementSpec spec_;
};

// --- Positions --------------------------------------------------------------

// Where an iterator is, as a value.
class IteratorPosition final : public VariantValue {
 public:
  explicit IteratorPosition(IteratorPlace place) : place_(std::move(place)) {}

  const IteratorPlace& place() const { return place_; }
  std::string describe() const override {
    return fmt::format("the position of an iterator, {}", place_.position);
  }
  size_t own_bytes() const override {
    size_t bytes = sizeof(*this);
    for (const auto& [node, seeds] : place_.drawn)
      bytes += kNodeBytes + sizeof node + node.size() + sizeof seeds;
    return bytes;
  }

 private:
  const IteratorPlace place_;
};

// What functions keep outside of the iterator is not part of its position,
// whatever external_state_policy says.
class SerializeIteratorKernel final : public CheapKernel {
 public:
  explicit SerializeIteratorKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Iterator* iterator,
                   handle_input<Iterator>(context, 0));
    Result<IteratorPlace> place = iterator->place();
    if (!place.ok()) return of_op(context, std::move(place).status());
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {1}));
    *output->mutable_data<Variant>() =
        Variant(make_ref_counted<IteratorPosition>(*std::move(place)));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

class DeserializeIteratorKernel final : public CheapKernel {
 public:
  explicit DeserializeIteratorKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Iterator * iterator, handle_input<Iterator>(context, 0));
    const Tensor& input = context.input(1);
    const auto* const saved =
        input.num_elements() == 1
            ? input.data<Variant>()->get_if<IteratorPosition>()
            : nullptr;
    if (saved == nullptr)
      return context.fail("input 1 must be the position of an iterator, not {}",
                          input.describe());
    return replace(context, *iterator,
                   [&] { return iterator->go_to(context, saved->place()); });
  }
  bool is_bookkeeping() const override { return true; }
};

// --- Handles as texts -------------------------------------------------------

// "iterator LENGTH CONTAINER NAME", without the space between the last two,
// since a container may have any name.
constexpr std::string_view kHandleStart = "iterator ";

std::string handle_text(const ResourceKey& key) {
  return fmt::format("{}{} {}{}", kHandleStart, key.container.size(),
                     key.container, key.name);
}

std::optional<ResourceKey> key_of_text(std::string_view text) {
  if (!text.starts_with(kHandleStart)) return std::nullopt;
  text.remove_prefix(kHandleStart.size());
  size_t length = 0;
  size_t at = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    length = length * 10 + size_t(text[at] - '0');
    if (length > text.size()) return std::nullopt;
  }
  if (at == 0 || at == text.size() || text[at] != ' ') return std::nullopt;
  text.remove_prefix(at + 1);
  if (length >= text.size()) return std::nullopt;
  return ResourceKey{std::string(text.substr(0, length)),
                     std::string(Iterator::kKind),
                     std::string(text.substr(length))};
}

class ToStringHandleKernel final : public CheapKernel {
 public:
  explicit ToStringHandleKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Iterator* iterator,
                   handle_input<Iterator>(context, 0));
    if (iterator->key().name.empty())
      return error(Code::kFailedPrecondition,
                   "[{}] {} has no name that a text could be made of",
                   context.node().op(), iterator->describe());
    context.set_output(0, Tensor::scalar(handle_text(iterator->key())));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

class FromStringHandleKernel final : public CheapKernel {
 public:
  explicit FromStringHandleKernel(const KernelInfo& info)
      : spec_(element_spec(info)) {}

  Status compute(KernelContext& context) const override {
    const Tensor& text = context.input(0);
    if (text.num_elements() != 1)
      return context.fail("the handle must be one string, not {}",
                          text.describe());
    const auto key = key_of_text(*text.data<std::string>());
    if (!key)
      return context.fail("the string is not the handle of an iterator");
    TAGFLOW_ASSIGN(ResourceManager * state, state_of(context));
    const Ref<StateObject> found = state->find(*key);
    const auto* const iterator = dynamic_cast<const Iterator*>(found.get());
    if (iterator == nullptr)
      return error(Code::kNotFound, "[{}] there is no {}", context.node().op(),
                   key->describe());
    if (!spec_.types.empty())
      TAGFLOW_RETURN_IF_ERROR(
          of_op(context, spec_.check(iterator->spec(), iterator->describe())));
    TAGFLOW_ASSIGN(Tensor * handle, context.allocate_output(0, {}));
    *handle->mutable_data<ResourceHandle>() =
        ResourceHandle(Ref<Resource>(found));
    return {};
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const ElementSpec spec_;
};

}  // namespace

void register_dataset_iterator_kernels(KernelRegistry& registry) {
  for (const char* op : {"Iterator", "IteratorV2", "AnonymousIterator",
                         "AnonymousIteratorV2", "AnonymousIteratorV3"})
    registry.add<IteratorKernel>(op);
  registry.add<OneShotIteratorKernel>("OneShotIterator");
  registry.add<MakeIteratorKernel>("MakeIterator");
  registry.add<GetNextKernel<WaitingKernel>>("IteratorGetNext");
  registry.add<GetNextKernel<WaitingKernel>>("IteratorGetNextSync");
  registry.add<GetNextKernel<OptionalRequest>>("IteratorGetNextAsOptional");
  registry.add<SerializeIteratorKernel>("SerializeIterator");
  registry.add<DeserializeIteratorKernel>("DeserializeIterator");
  registry.add<ToStringHandleKernel>("IteratorToStringHandle");
  for (const char* op :
       {"IteratorFromStringHandle", "IteratorFromStringHandleV2"})
    registry.add<FromStringHandleKernel>(op);
}

}  // namespace tagflow::devices
