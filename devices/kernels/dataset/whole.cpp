// Ops that go through a whole dataset in one run: ReduceDataset and
// DatasetToSingleElement; and DatasetCardinality.
#include <iterator>

#include "devices/kernels/dataset/element_answer.h"
#include "devices/kernels/dataset/function_call.h"

namespace tagflow::devices {

namespace {

// One element: the state after the function was called with each element.
class ReduceStage final : public Stage {
 public:
  ReduceStage(Segment& segment, StagePtr input, StageFunction function,
              Element state)
      : segment_(segment),
        input_(std::move(input)),
        function_(std::move(function)),
        state_(std::move(state)) {}

  Progress next(Pull& pull) override {
    while (!is_over_) {
      if (!segment_.take_turn()) return Progress::kWait;
      if (call_ == nullptr) {
        const Progress progress = input_->next(pull);
        if (progress == Progress::kEnd) {
          is_over_ = true;
          return pull.give(std::move(state_));
        }
        if (progress != Progress::kElement) return progress;
        Element args = state_;
        std::ranges::move(pull.element, std::back_inserter(args));
        call_ = function_(std::move(args));
      }
      if (!call_->is_done()) return Progress::kWait;
      Result<Element> answer = std::exchange(call_, nullptr)->take();
      // The function may end the reduction as it may end a dataset.
      if (!answer.ok() && answer.status().code() == Code::kOutOfRange) {
        is_over_ = true;
        return pull.give(std::move(state_));
      }
      if (!answer.ok()) return pull.fail(std::move(answer).status());
      if (answer->size() != state_.size())
        return pull.fail(invalid_argument(
            "the function returned {} values, but the state has {}",
            answer->size(), state_.size()));
      state_ = *std::move(answer);
    }
    return Progress::kEnd;
  }

 private:
  Segment& segment_;
  const StagePtr input_;
  const StageFunction function_;
  Element state_;
  CallPtr call_;
  bool is_over_ = false;
};

// The only element of its input; an error if it has none or more.
class SingleStage final : public Stage {
 public:
  explicit SingleStage(StagePtr input) : input_(std::move(input)) {}

  Progress next(Pull& pull) override {
    if (!element_) {
      const Progress progress = input_->next(pull);
      if (progress == Progress::kEnd)
        return pull.fail(invalid_argument("the dataset is empty"));
      if (progress != Progress::kElement) return progress;
      element_ = std::move(pull.element);
    }
    const Progress progress = input_->next(pull);
    if (progress == Progress::kEnd) return pull.give(*std::move(element_));
    if (progress == Progress::kElement)
      return pull.fail(
          invalid_argument("the dataset has more than one element"));
    return progress;
  }

 private:
  const StagePtr input_;
  std::optional<Element> element_;
};

// Runs a pipeline of its own, whose first element is its output.
class WholeKernel : public AsyncKernel {
 public:
  explicit WholeKernel(const KernelInfo& info) : spec_(element_spec(info)) {}

  void compute_async(KernelContext& context, Completion done) const final {
    Result<DatasetParts> parts = make_parts(DatasetArgs(context));
    if (!parts.ok()) return done(std::move(parts).status());
    const auto pipeline = std::make_shared<RunningPipeline>(
        context, DatasetRef(make_ref_counted<Dataset>(
                     context.node().op(), context.node().name(), spec_,
                     *std::move(parts))));
    const auto request = std::make_shared<WaitingKernel>(
        context, std::move(done), spec_, pipeline);
    pipeline->ask(request);
  }
  bool is_bookkeeping() const final { return true; }

 protected:
  virtual Result<DatasetParts> make_parts(const DatasetArgs& args) const = 0;

 private:
  const ElementSpec spec_;
};

class ReduceKernel final : public WholeKernel {
 public:
  using WholeKernel::WholeKernel;

 private:
  Result<DatasetParts> make_parts(const DatasetArgs& args) const override {
    TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
    const int states = args.list_size("Tstate");
    const auto initial = args.context().inputs().subspan(1, size_t(states));
    const Element state(initial.begin(), initial.end());
    TAGFLOW_ASSIGN(const CapturedFunction function,
                   args.function("f", 1 + states));
    return DatasetParts{
        1, [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
          TAGFLOW_ASSIGN(
              StageFunction calls,
              StageFunction::make(segment, function,
                                  state.size() + input->spec().types.size()));
          TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
          return StagePtr(std::make_unique<ReduceStage>(
              segment, std::move(stage), std::move(calls), state));
        }};
  }
};

class SingleElementKernel final : public WholeKernel {
 public:
  using WholeKernel::WholeKernel;

 private:
  Result<DatasetParts> make_parts(const DatasetArgs& args) const override {
    TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
    return DatasetParts{
        1, [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
          TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
          return StagePtr(std::make_unique<SingleStage>(std::move(stage)));
        }};
  }
};

class CardinalityKernel final : public CheapKernel {
 public:
  explicit CardinalityKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const DatasetRef dataset, DatasetArgs(context).dataset(0));
    context.set_output(0, Tensor::scalar(dataset->cardinality()));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

}  // namespace

void register_dataset_whole_kernels(KernelRegistry& registry) {
  registry.add<ReduceKernel>("ReduceDataset");
  registry.add<SingleElementKernel>("DatasetToSingleElement");
  for (const char* op :
       {"DatasetCardinality", "ExperimentalDatasetCardinality"})
    registry.add<CardinalityKernel>(op);
}

}  // namespace tagflow::devices
