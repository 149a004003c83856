// Datasets that pass elements on by their number: TakeDataset, SkipDataset,
// ShardDataset, RepeatDataset, ConcatenateDataset, ZipDataset; and those that
// pass on all of them, since they only say how others run.
#include <algorithm>
#include <limits>
#include <optional>

#include "devices/kernels/dataset/dataset.h"

namespace tagflow::devices {

namespace {

// --- Take, skip -------------------------------------------------------------

class TakeStage final : public Stage {
 public:
  TakeStage(StagePtr input, int64_t count)
      : input_(std::move(input)), left_(count) {}

  Progress next(Pull& pull) override {
    if (left_ == 0) return Progress::kEnd;
    const Progress progress = input_->next(pull);
    if (progress == Progress::kElement && left_ > 0) --left_;
    return progress;
  }

 private:
  const StagePtr input_;
  int64_t left_;  // negative: all
};

int64_t taken_of(int64_t cardinality, int64_t count) {
  if (count < 0) return cardinality;
  if (cardinality == kInfiniteCardinality) return count;
  if (cardinality == kUnknownCardinality)
    return count == 0 ? 0 : kUnknownCardinality;
  return std::min(cardinality, count);
}

Result<DatasetParts> take_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const int64_t count, args.number(1, "count"));
  return DatasetParts{
      taken_of(input->cardinality(), count),
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<TakeStage>(std::move(stage), count));
      },
      input->spec().types};
}

// A part of a stage, which leaves out elements of its input.
class Skipping {
 public:
  Skipping(Segment& segment, Stage& input, int64_t count)
      : segment_(segment), input_(input), count_(count), left_(count) {}

  void begin(int64_t count) { left_ = count_ = count; }
  // kElement: that many are left out, and input is next.
  Progress run(Pull& pull) {
    while (left_ > 0) {
      if (!segment_.take_turn()) return Progress::kWait;
      const Progress progress = input_.next(pull);
      // After an error it begins anew, as TensorFlow does.
      if (progress == Progress::kFailed) left_ = count_;
      if (progress != Progress::kElement) return progress;
      --left_;
    }
    return left_ < 0 ? Progress::kEnd : Progress::kElement;
  }

 private:
  Segment& segment_;
  Stage& input_;
  int64_t count_;
  int64_t left_;  // negative: all
};

class SkipStage final : public Stage {
 public:
  SkipStage(Segment& segment, StagePtr input, int64_t count)
      : input_(std::move(input)), skipping_(segment, *input_, count) {}

  Progress next(Pull& pull) override {
    const Progress skipped = skipping_.run(pull);
    return skipped == Progress::kElement ? input_->next(pull) : skipped;
  }

 private:
  const StagePtr input_;
  Skipping skipping_;
};

Result<DatasetParts> skip_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const int64_t count, args.number(1, "count"));
  int64_t left = input->cardinality();
  if (count < 0)
    left = 0;
  else if (left >= 0)
    left = std::max<int64_t>(left - count, 0);
  return DatasetParts{
      left,
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(
            std::make_unique<SkipStage>(segment, std::move(stage), count));
      },
      input->spec().types};
}

// --- Shard ------------------------------------------------------------------

struct ShardSpec {
  int64_t shards = 1;
  int64_t index = 0;
  bool require_non_empty = false;  // each shard must have an element
};

class ShardStage final : public Stage {
 public:
  ShardStage(Segment& segment, const Dataset& dataset, StagePtr input,
             const ShardSpec& spec)
      : dataset_(&dataset),
        spec_(spec),
        input_(std::move(input)),
        skipping_(segment, *input_, spec.index),
        checks_(spec.require_non_empty) {}

  Progress next(Pull& pull) override {
    if (!first_) {
      const Progress skipped = skipping_.run(pull);
      if (skipped != Progress::kElement) return skipped;
      const Progress progress = input_->next(pull);
      skipping_.begin(progress == Progress::kElement ? spec_.shards - 1 : 0);
      if (progress != Progress::kElement || !checks_) return progress;
      first_ = std::move(pull.element);
      skipping_.begin(spec_.shards - 1 - spec_.index);
    }
    const Progress skipped = skipping_.run(pull);
    if (skipped == Progress::kWait) return skipped;
    Element first = *std::exchange(first_, std::nullopt);
    checks_ = false;
    skipping_.begin(skipped == Progress::kElement ? spec_.index
                                                  : spec_.shards - 1);
    if (skipped == Progress::kElement) return pull.give(std::move(first));
    if (skipped == Progress::kFailed) return skipped;
    return pull.fail(invalid_argument(
        "{}there are fewer elements than the {} shards, each of which must "
        "have one",
        dataset_->prefix(), spec_.shards));
  }

 private:
  const DatasetRef dataset_;
  const ShardSpec spec_;
  const StagePtr input_;
  Skipping skipping_;
  bool checks_;                   // that all shards have an element
  std::optional<Element> first_;  // is given after that
};

Result<DatasetParts> shard_dataset(const DatasetArgs& args) {
  // What TensorFlow replaces when it distributes a dataset.
  constexpr int64_t kHint = -1;
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  ShardSpec spec;
  TAGFLOW_ASSIGN(spec.shards, args.number(1, "num_shards"));
  if (spec.shards == kHint)
    return error(Code::kFailedPrecondition,
                 "[{}] num_shards is -1, a hint for a strategy of TensorFlow "
                 "that distributes the dataset, but none has replaced it",
                 args.context().node().op());
  if (spec.shards < 1)
    return args.context().fail("num_shards must be positive, but is {}",
                               spec.shards);
  TAGFLOW_ASSIGN(spec.index, args.number(2, "index"));
  if (spec.index < 0 || spec.index >= spec.shards)
    return args.context().fail("index must be from 0 to {}, but is {}",
                               spec.shards - 1, spec.index);
  spec.require_non_empty = args.attr("require_non_empty", false);
  int64_t cardinality = input->cardinality();
  if (cardinality >= 0)
    cardinality = cardinality / spec.shards +
                  (spec.index < cardinality % spec.shards ? 1 : 0);
  return DatasetParts{
      cardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<ShardStage>(segment, self,
                                                     std::move(stage), spec));
      },
      input->spec().types};
}

// --- Repeat -----------------------------------------------------------------

class RepeatStage final : public Stage {
 public:
  RepeatStage(Segment& segment, DatasetRef input, int64_t count)
      : segment_(segment), input_(std::move(input)), left_(count) {}

  Progress next(Pull& pull) override {
    while (left_ != 0) {
      if (stage_ == nullptr) {
        const Segment::Depth here(segment_, depth_);
        Result<StagePtr> stage = input_->start(segment_);
        if (!stage.ok()) {
          left_ = 0;  // it would fail each time
          return pull.fail(std::move(stage).status());
        }
        stage_ = *std::move(stage);
        is_first_ = true;
      }
      const Progress progress = stage_->next(pull);
      if (progress != Progress::kEnd) {
        if (progress != Progress::kWait) is_first_ = false;
        return progress;
      }
      stage_ = nullptr;
      // Without an end, an empty input would be asked forever.
      if (left_ < 0 && is_first_) left_ = 0;
      if (left_ > 0) --left_;
      if (left_ != 0 && !segment_.take_turn()) return Progress::kWait;
    }
    return Progress::kEnd;
  }

 private:
  Segment& segment_;
  const int depth_ = segment_.depth();
  const DatasetRef input_;
  int64_t left_;  // epochs; negative: no end
  StagePtr stage_;
  bool is_first_ = true;
};

int64_t repeated(int64_t cardinality, int64_t count) {
  if (cardinality == 0 || count == 0) return 0;
  if (cardinality == kInfiniteCardinality || count < 0)
    return cardinality == kUnknownCardinality && count >= 0
               ? kUnknownCardinality
               : kInfiniteCardinality;
  if (cardinality == kUnknownCardinality) return kUnknownCardinality;
  return checked_multiply(cardinality, count).value_or(kUnknownCardinality);
}

Result<DatasetParts> repeat_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const int64_t count, args.number(1, "count"));
  return DatasetParts{
      repeated(input->cardinality(), count),
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        return StagePtr(std::make_unique<RepeatStage>(segment, input, count));
      },
      input->spec().types};
}

// --- Several inputs ---------------------------------------------------------

class ConcatenateStage final : public Stage {
 public:
  ConcatenateStage(StagePtr first, StagePtr second)
      : inputs_{std::move(first), std::move(second)} {}

  Progress next(Pull& pull) override {
    for (; at_ < 2; ++at_) {
      const Progress progress = inputs_[at_]->next(pull);
      if (progress != Progress::kEnd) return progress;
      inputs_[at_] = nullptr;
    }
    return Progress::kEnd;
  }

 private:
  StagePtr inputs_[2];
  size_t at_ = 0;
};

int64_t joined(int64_t a, int64_t b) {
  if (a == kInfiniteCardinality || b == kInfiniteCardinality)
    return kInfiniteCardinality;
  if (a == kUnknownCardinality || b == kUnknownCardinality)
    return kUnknownCardinality;
  return a > std::numeric_limits<int64_t>::max() - b ? kUnknownCardinality
                                                     : a + b;
}

Result<DatasetParts> concatenate_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef first, args.dataset(0));
  TAGFLOW_ASSIGN(const DatasetRef second, args.dataset(1));
  if (first->spec().types != second->spec().types)
    return args.context().fail("the datasets have elements of different types");
  return DatasetParts{
      joined(first->cardinality(), second->cardinality()),
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr a, first->start(segment));
        TAGFLOW_ASSIGN(StagePtr b, second->start(segment));
        return StagePtr(
            std::make_unique<ConcatenateStage>(std::move(a), std::move(b)));
      },
      first->spec().types};
}

class ZipStage final : public Stage {
 public:
  explicit ZipStage(std::vector<StagePtr> inputs)
      : inputs_(std::move(inputs)) {}

  Progress next(Pull& pull) override {
    for (; at_ < inputs_.size(); ++at_) {
      const Progress progress = inputs_[at_]->next(pull);
      if (progress == Progress::kWait || progress == Progress::kEnd)
        return progress;
      if (progress == Progress::kFailed && failed_.ok())
        failed_ = std::move(pull.error);
      if (progress == Progress::kElement)
        std::ranges::move(pull.element, std::back_inserter(element_));
    }
    at_ = 0;
    Element element = std::exchange(element_, {});
    if (!failed_.ok()) return pull.fail(std::exchange(failed_, {}));
    return pull.give(std::move(element));
  }

 private:
  const std::vector<StagePtr> inputs_;
  size_t at_ = 0;  // the input whose part of `element_` is next
  Element element_;
  Status failed_;  // of the element
};

Result<DatasetParts> zip_dataset(const DatasetArgs& args) {
  std::vector<DatasetRef> inputs;
  std::vector<DataType> types;
  int64_t cardinality = kInfiniteCardinality;
  for (int i = 0; i < args.context().num_inputs(); ++i) {
    TAGFLOW_ASSIGN(DatasetRef input, args.dataset(i));
    const int64_t size = input->cardinality();
    if (cardinality == kInfiniteCardinality)
      cardinality = size;
    else if (size == kUnknownCardinality)
      cardinality = size;
    else if (cardinality != kUnknownCardinality && size >= 0)
      cardinality = std::min(cardinality, size);
    types.insert(types.end(), input->spec().types.begin(),
                 input->spec().types.end());
    inputs.push_back(std::move(input));
  }
  return DatasetParts{
      cardinality,
      [inputs](Segment& segment, const Dataset&) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(std::vector<StagePtr> stages,
                       start_all(inputs, segment));
        return StagePtr(std::make_unique<ZipStage>(std::move(stages)));
      },
      std::move(types)};
}

// --- All elements -----------------------------------------------------------

Result<DatasetParts> same_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  return DatasetParts{
      input->cardinality(),
      [=](Segment& segment, const Dataset&) { return input->start(segment); },
      input->spec().types};
}

}  // namespace

void register_dataset_counting_kernels(KernelRegistry& registry) {
  add_dataset(registry, "TakeDataset", take_dataset);
  add_dataset(registry, "SkipDataset", skip_dataset);
  add_dataset(registry, "ShardDataset", shard_dataset);
  add_dataset(registry, "RepeatDataset", repeat_dataset);
  add_dataset(registry, "ConcatenateDataset", concatenate_dataset);
  add_dataset(registry, "ZipDataset", zip_dataset);
  for (const char* op :
       {"OptionsDataset", "ModelDataset", "OptimizeDataset",
        "OptimizeDatasetV2", "RewriteDataset", "FinalizeDataset",
        "AssertNextDataset", "PrivateThreadPoolDataset",
        "MaxIntraOpParallelismDataset", "NonSerializableDataset",
        "ExperimentalAssertNextDataset", "ExperimentalPrivateThreadPoolDataset",
        "ExperimentalMaxIntraOpParallelismDataset",
        "ExperimentalNonSerializableDataset"})
    add_dataset(registry, op, same_dataset);
}

}  // namespace tagflow::devices
