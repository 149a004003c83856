// Datasets that call a function for each element: MapDataset,
// ParallelMapDataset, FilterDataset, ParallelFilterDataset, TakeWhileDataset
// and ScanDataset.
#include "devices/kernels/dataset/map.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace tagflow::devices {

namespace {

// A function that fails with OutOfRange ends its dataset, as the input of an
// iterator in it does; unless the dataset promises as many elements as its
// input has.
Progress failed_call(Pull& pull, const Dataset& dataset,
                     bool keeps_cardinality) {
  if (pull.error.code() != Code::kOutOfRange) {
    pull.error = std::move(pull.error).with_prefix(dataset.prefix());
    return Progress::kFailed;
  }
  if (!keeps_cardinality) return Progress::kEnd;
  return pull.fail(invalid_argument(
      "{}the function must not end the dataset, but it failed: {}",
      dataset.prefix(), pull.error.message()));
}

// --- Map --------------------------------------------------------------------

// Calls is CallEach or ParallelCalls.
template <class Calls>
class MapStage final : public Stage {
 public:
  MapStage(const Dataset& dataset, Calls calls, bool keeps_cardinality)
      : dataset_(&dataset),
        calls_(std::move(calls)),
        keeps_cardinality_(keeps_cardinality) {}

  Progress next(Pull& pull) override {
    if (!calls_) return Progress::kEnd;
    bool was_called = false;
    Progress progress = calls_->next(pull, &was_called);
    if (progress == Progress::kFailed && was_called)
      progress = failed_call(pull, *dataset_, keeps_cardinality_);
    if (progress == Progress::kEnd) calls_.reset();
    return progress;
  }

 private:
  const DatasetRef dataset_;
  std::optional<Calls> calls_;  // none: it is over
  const bool keeps_cardinality_;
};

Result<DatasetParts> map_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const CapturedFunction function, args.function("f", 1));
  const bool keeps = args.attr("preserve_cardinality", false);
  return DatasetParts{
      keeps ? input->cardinality() : kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(
            StageFunction calls,
            StageFunction::make(segment, function, input->spec().types.size()));
        TAGFLOW_RETURN_IF_ERROR(calls.check_gives(0, self.spec().types));
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<MapStage<CallEach>>(
            self, CallEach(std::move(stage), std::move(calls)), keeps));
      }};
}

Result<DatasetParts> parallel_map_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const CapturedFunction function, args.function("f", 1));
  TAGFLOW_ASSIGN(const int64_t calls, args.parallel_calls(args.from_end(1)));
  const bool keeps = args.attr("preserve_cardinality", false);
  return DatasetParts{
      keeps ? input->cardinality() : kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return parallel_map(segment, self, std::move(stage), *input, function,
                            calls, keeps);
      }};
}

// --- Predicates -------------------------------------------------------------

struct PredicateSpec {
  int64_t calls = 0;  // open at once, as of parallel_calls(); 0: one by one
  // The first element for which it is false is the end; otherwise all of them
  // are left out.
  bool ends_at_false = false;
};

// Passes on elements for which a predicate is true.
template <class Calls>
class PredicateStage final : public Stage {
 public:
  PredicateStage(Segment& segment, const Dataset& dataset, Calls calls,
                 const PredicateSpec& spec)
      : segment_(segment),
        dataset_(&dataset),
        calls_(std::move(calls)),
        spec_(spec) {}

  Progress next(Pull& pull) override {
    while (!is_over_) {
      if (!segment_.take_turn()) return Progress::kWait;
      Element element;
      bool was_called = false;
      const Progress progress = calls_.next(pull, &was_called, &element);
      if (progress == Progress::kFailed && was_called) {
        // As in TensorFlow, only calls one by one may end a run like the end.
        if (spec_.calls != 0) return failed_call(pull, *dataset_, true);
        pull.error = std::move(pull.error).with_prefix(dataset_->prefix());
      }
      if (progress != Progress::kElement) return progress;
      Result<bool> passes = predicate_of(pull.element);
      if (!passes.ok())
        return pull.fail(
            std::move(passes).status().with_prefix(dataset_->prefix()));
      if (*passes) return pull.give(std::move(element));
      is_over_ = spec_.ends_at_false;
    }
    return Progress::kEnd;
  }

 private:
  Segment& segment_;
  const DatasetRef dataset_;
  Calls calls_;
  const PredicateSpec spec_;
  bool is_over_ = false;
};

Result<DatasetParts> passing(const DatasetArgs& args,
                             const PredicateSpec& spec) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const CapturedFunction function,
                 args.function("predicate", 1));
  return DatasetParts{
      kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(
            StageFunction calls,
            StageFunction::make(segment, function, input->spec().types.size()));
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        if (spec.calls == 0)
          return StagePtr(std::make_unique<PredicateStage<CallEach>>(
              segment, self, CallEach(std::move(stage), std::move(calls)),
              spec));
        return StagePtr(std::make_unique<PredicateStage<ParallelCalls>>(
            segment, self,
            ParallelCalls(segment, std::move(stage), std::move(calls),
                          size_t(segment.pipeline().open_calls(spec.calls))),
            spec));
      },
      input->spec().types};
}

Result<DatasetParts> filter_dataset(const DatasetArgs& args) {
  return passing(args, {});
}

Result<DatasetParts> take_while_dataset(const DatasetArgs& args) {
  return passing(args, {.ends_at_false = true});
}

Result<DatasetParts> parallel_filter_dataset(const DatasetArgs& args) {
  PredicateSpec spec;
  TAGFLOW_ASSIGN(spec.calls, args.parallel_calls(args.from_end(1)));
  return passing(args, spec);
}

// --- Scan -------------------------------------------------------------------

class ScanStage final : public Stage {
 public:
  ScanStage(const Dataset& dataset, StagePtr input, StageFunction function,
            Element state, bool keeps_cardinality)
      : dataset_(&dataset),
        input_(std::move(input)),
        function_(std::move(function)),
        state_(std::move(state)),
        keeps_cardinality_(keeps_cardinality) {}

  Progress next(Pull& pull) override {
    if (call_ == nullptr) {
      const Progress progress = input_->next(pull);
      if (progress != Progress::kElement) return progress;
      Element args = state_;
      std::ranges::move(pull.element, std::back_inserter(args));
      call_ = function_(std::move(args));
    }
    if (!call_->is_done()) return Progress::kWait;
    Result<Element> answer = std::exchange(call_, nullptr)->take();
    if (!answer.ok()) {
      (void)pull.fail(std::move(answer).status());
      return failed_call(pull, *dataset_, keeps_cardinality_);
    }
    const size_t states = state_.size();
    if (answer->size() < states)
      return pull.fail(invalid_argument(
          "{}the function returned {} values, but the state has {}",
          dataset_->prefix(), answer->size(), states));
    const auto end_of_state = answer->begin() + std::ptrdiff_t(states);
    state_.assign(answer->begin(), end_of_state);
    return pull.give({end_of_state, answer->end()});
  }

 private:
  const DatasetRef dataset_;
  const StagePtr input_;
  const StageFunction function_;
  Element state_;
  const bool keeps_cardinality_;
  CallPtr call_;  // null: none is open
};

Result<DatasetParts> scan_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  const int states = args.list_size("Tstate");
  const auto initial = args.context().inputs().subspan(1, size_t(states));
  const Element state(initial.begin(), initial.end());
  TAGFLOW_ASSIGN(const CapturedFunction function,
                 args.function("f", 1 + states));
  const bool keeps = args.attr("preserve_cardinality", false);
  return DatasetParts{
      keeps ? input->cardinality() : kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(
            StageFunction calls,
            StageFunction::make(segment, function,
                                state.size() + input->spec().types.size()));
        TAGFLOW_RETURN_IF_ERROR(
            calls.check_gives(state.size(), self.spec().types));
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<ScanStage>(
            self, std::move(stage), std::move(calls), state, keeps));
      }};
}

}  // namespace

Result<StagePtr> parallel_map(Segment& segment, const Dataset& self,
                              StagePtr input, const Dataset& elements,
                              const CapturedFunction& function, int64_t calls,
                              bool keeps_cardinality) {
  TAGFLOW_ASSIGN(
      StageFunction stage_function,
      StageFunction::make(segment, function, elements.spec().types.size()));
  TAGFLOW_RETURN_IF_ERROR(stage_function.check_gives(0, self.spec().types));
  return parallel_calls(segment, self, std::move(input),
                        std::move(stage_function), calls, keeps_cardinality);
}

StagePtr parallel_calls(Segment& segment, const Dataset& self, StagePtr input,
                        StartCall call, int64_t calls, bool keeps_cardinality) {
  return std::make_unique<MapStage<ParallelCalls>>(
      self,
      ParallelCalls(segment, std::move(input), std::move(call),
                    size_t(segment.pipeline().open_calls(calls))),
      keeps_cardinality);
}

void register_dataset_map_kernels(KernelRegistry& registry) {
  add_dataset(registry, "MapDataset", map_dataset);
  add_dataset(registry, "ParallelMapDataset", parallel_map_dataset);
  add_dataset(registry, "ParallelMapDatasetV2", parallel_map_dataset);
  add_dataset(registry, "FilterDataset", filter_dataset);
  add_dataset(registry, "ParallelFilterDataset", parallel_filter_dataset);
  for (const char* op : {"TakeWhileDataset", "ExperimentalTakeWhileDataset"})
    add_dataset(registry, op, take_while_dataset);
  for (const char* op : {"ScanDataset", "ExperimentalScanDataset"})
    add_dataset(registry, op, scan_dataset);
}

}  // namespace tagflow::devices
