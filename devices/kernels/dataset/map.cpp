// Datasets that call a function for each element: MapDataset,
// ParallelMapDataset, FilterDataset, TakeWhileDataset and ScanDataset.
#include "devices/kernels/dataset/map.h"

#include <algorithm>
#include <deque>
#include <iterator>

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
      "{}the function must give a result for each element, but it failed: {}",
      dataset.prefix(), pull.error.message()));
}

// --- Map --------------------------------------------------------------------

class MapStage final : public Stage {
 public:
  MapStage(const Dataset& dataset, CallEach calls, bool keeps_cardinality)
      : dataset_(&dataset),
        calls_(std::move(calls)),
        keeps_cardinality_(keeps_cardinality) {}

  Progress next(Pull& pull) override {
    bool was_called = false;
    const Progress progress = calls_.next(pull, &was_called);
    return progress == Progress::kFailed && was_called
               ? failed_call(pull, *dataset_, keeps_cardinality_)
               : progress;
  }

 private:
  const DatasetRef dataset_;
  CallEach calls_;
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
        return StagePtr(std::make_unique<MapStage>(
            self, CallEach(std::move(stage), std::move(calls)), keeps));
      }};
}

class ParallelMapStage final : public Stage {
 public:
  ParallelMapStage(Segment& segment, const Dataset& dataset, StagePtr input,
                   StartCall call, size_t most, bool keeps_cardinality)
      : segment_(segment),
        dataset_(&dataset),
        input_(std::move(input)),
        call_(std::move(call)),
        most_(most),
        keeps_cardinality_(keeps_cardinality) {}

  Progress next(Pull& pull) override {
    while (!is_over_ && open_.size() < most_) {
      if (!segment_.take_turn()) break;
      const Progress progress = input_->next(pull);
      if (progress == Progress::kWait) break;
      if (progress == Progress::kEnd)
        is_over_ = true;
      else if (progress == Progress::kFailed)
        open_.push_back({nullptr, std::move(pull.error)});
      else
        open_.push_back({call_(std::move(pull.element)), {}});
    }
    if (open_.empty()) return is_over_ ? Progress::kEnd : Progress::kWait;
    Open& first = open_.front();
    if (first.call != nullptr && !first.call->is_done()) return Progress::kWait;
    const Open done = std::move(first);
    open_.pop_front();
    if (done.call == nullptr) return pull.fail(done.error);
    Result<Element> answer = done.call->take();
    if (answer.ok()) return pull.give(*std::move(answer));
    (void)pull.fail(std::move(answer).status());
    const Progress failed = failed_call(pull, *dataset_, keeps_cardinality_);
    if (failed == Progress::kEnd) {
      is_over_ = true;
      open_.clear();
    }
    return failed;
  }

 private:
  struct Open {
    CallPtr call;  // null: the input failed
    Status error;
  };

  Segment& segment_;
  const DatasetRef dataset_;
  const StagePtr input_;
  const StartCall call_;
  const size_t most_;
  const bool keeps_cardinality_;
  std::deque<Open> open_;  // in the order of their elements
  bool is_over_ = false;
};

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

// Passes on elements for which a predicate is true. The first other one is left
// out, or it is the end.
class PredicateStage final : public Stage {
 public:
  PredicateStage(Segment& segment, const Dataset& dataset, CallEach calls,
                 bool ends_at_false)
      : segment_(segment),
        dataset_(&dataset),
        calls_(std::move(calls)),
        ends_at_false_(ends_at_false) {}

  Progress next(Pull& pull) override {
    while (!is_over_) {
      if (!segment_.take_turn()) return Progress::kWait;
      Element element;
      bool was_called = false;
      const Progress progress = calls_.next(pull, &was_called, &element);
      if (progress == Progress::kFailed && was_called)
        pull.error = std::move(pull.error).with_prefix(dataset_->prefix());
      if (progress != Progress::kElement) return progress;
      Result<bool> passes = predicate_of(pull.element);
      if (!passes.ok())
        return pull.fail(
            std::move(passes).status().with_prefix(dataset_->prefix()));
      if (*passes) return pull.give(std::move(element));
      is_over_ = ends_at_false_;
    }
    return Progress::kEnd;
  }

 private:
  Segment& segment_;
  const DatasetRef dataset_;
  CallEach calls_;
  const bool ends_at_false_;
  bool is_over_ = false;
};

template <bool kEndsAtFalse>
Result<DatasetParts> predicate_dataset(const DatasetArgs& args) {
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
        return StagePtr(std::make_unique<PredicateStage>(
            segment, self, CallEach(std::move(stage), std::move(calls)),
            kEndsAtFalse));
      },
      input->spec().types};
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
      call_ = function_.call(std::move(args));
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
  const auto call = [stage_function = std::move(stage_function)](Element args) {
    return stage_function.call(std::move(args));
  };
  return parallel_calls(segment, self, std::move(input), call, calls,
                        keeps_cardinality);
}

StagePtr parallel_calls(Segment& segment, const Dataset& self, StagePtr input,
                        StartCall call, int64_t calls, bool keeps_cardinality) {
  return std::make_unique<ParallelMapStage>(
      segment, self, std::move(input), std::move(call),
      size_t(segment.pipeline().open_calls(calls)), keeps_cardinality);
}

void register_dataset_map_kernels(KernelRegistry& registry) {
  add_dataset(registry, "MapDataset", map_dataset);
  add_dataset(registry, "ParallelMapDataset", parallel_map_dataset);
  add_dataset(registry, "ParallelMapDatasetV2", parallel_map_dataset);
  add_dataset(registry, "FilterDataset", predicate_dataset<false>);
  add_dataset(registry, "TakeWhileDataset", predicate_dataset<true>);
  add_dataset(registry, "ScanDataset", scan_dataset);
}

}  // namespace tagflow::devices
