// Datasets that pass elements on by their number: TakeDataset, SkipDataset,
// RepeatDataset, ConcatenateDataset, ZipDataset; and those that pass on all of
// them, since they only say how others run.
#include <algorithm>

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

class SkipStage final : public Stage {
 public:
  SkipStage(Segment& segment, StagePtr input, int64_t count)
      : segment_(segment),
        input_(std::move(input)),
        count_(count),
        left_(count) {}

  Progress next(Pull& pull) override {
    while (left_ > 0) {
      if (!segment_.take_turn()) return Progress::kWait;
      const Progress progress = input_->next(pull);
      // After an error it begins anew, as TensorFlow does.
      if (progress == Progress::kFailed) left_ = count_;
      if (progress != Progress::kElement) return progress;
      --left_;
    }
    return left_ < 0 ? Progress::kEnd : input_->next(pull);
  }

 private:
  Segment& segment_;
  const StagePtr input_;
  const int64_t count_;
  int64_t left_;  // negative: all
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
        std::vector<StagePtr> stages;
        for (const DatasetRef& input : inputs) {
          TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
          stages.push_back(std::move(stage));
        }
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
  add_dataset(registry, "RepeatDataset", repeat_dataset);
  add_dataset(registry, "ConcatenateDataset", concatenate_dataset);
  add_dataset(registry, "ZipDataset", zip_dataset);
  for (const char* op :
       {"OptionsDataset", "ModelDataset", "OptimizeDataset",
        "OptimizeDatasetV2", "FinalizeDataset", "AssertNextDataset",
        "PrivateThreadPoolDataset", "MaxIntraOpParallelismDataset",
        "NonSerializableDataset"})
    add_dataset(registry, op, same_dataset);
}

}  // namespace tagflow::devices
