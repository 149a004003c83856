// Datasets that look at each element of another one: AssertCardinalityDataset,
// IgnoreErrorsDataset and UniqueDataset.
#include <algorithm>
#include <unordered_set>

#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/segment.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// --- Cardinality ------------------------------------------------------------

// As in TensorFlow, the error is the answer for good, not an end.
class AssertCardinalityStage final : public Stage {
 public:
  AssertCardinalityStage(const Dataset& dataset, StagePtr input, int64_t wanted)
      : dataset_(&dataset), input_(std::move(input)), wanted_(wanted) {}

  Progress next(Pull& pull) override {
    const Progress progress = input_->next(pull);
    if (progress == Progress::kElement &&
        (++count_ <= wanted_ || wanted_ == kInfiniteCardinality))
      return progress;
    if (progress == Progress::kElement) return failed(pull, "at least");
    if (progress == Progress::kEnd && count_ != wanted_)
      return failed(pull, "only");
    return progress;
  }

 private:
  Progress failed(Pull& pull, std::string_view how) const {
    return pull.fail(error(
        Code::kFailedPrecondition,
        "{}the dataset has {} {} elements, but must have {}",
        dataset_->prefix(), how, count_,
        wanted_ == kInfiniteCardinality ? "no end" : std::to_string(wanted_)));
  }

  const DatasetRef dataset_;
  const StagePtr input_;
  const int64_t wanted_;
  int64_t count_ = 0;
};

Result<DatasetParts> assert_cardinality_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const int64_t cardinality, args.number(1, "cardinality"));
  return DatasetParts{
      std::max(cardinality, kUnknownCardinality),
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<AssertCardinalityStage>(
            self, std::move(stage), cardinality));
      },
      input->spec().types};
}

// --- Errors -----------------------------------------------------------------

class IgnoreErrorsStage final : public Stage {
 public:
  IgnoreErrorsStage(Segment& segment, StagePtr input)
      : segment_(segment), input_(std::move(input)) {}

  Progress next(Pull& pull) override {
    for (;;) {
      if (!segment_.take_turn()) return Progress::kWait;
      const Progress progress = input_->next(pull);
      if (progress != Progress::kFailed ||
          pull.error.code() == Code::kCancelled)
        return progress;
    }
  }

 private:
  Segment& segment_;
  const StagePtr input_;
};

Result<DatasetParts> ignore_errors_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  return DatasetParts{
      kUnknownCardinality,
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(
            std::make_unique<IgnoreErrorsStage>(segment, std::move(stage)));
      },
      input->spec().types};
}

// --- Unique -----------------------------------------------------------------

struct HashOfTensor {
  size_t operator()(const Tensor& tensor) const {
    uint64_t hash = 0;
    visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_integral_v<T> || std::is_same_v<T, std::string>)
        for (const T& value : tensor.flat<T>())
          hash = (hash ^ std::hash<T>()(value)) * 0x9e3779b97f4a7c15;
    });
    return hash ^ (hash >> 32);
  }
};

struct IdenticalTensors {
  bool operator()(const Tensor& a, const Tensor& b) const {
    return identical(a, b);
  }
};

class UniqueStage final : public Stage {
 public:
  UniqueStage(Segment& segment, const Dataset& dataset, StagePtr input)
      : segment_(segment), dataset_(&dataset), input_(std::move(input)) {}

  Progress next(Pull& pull) override {
    for (;;) {
      if (!segment_.take_turn()) return Progress::kWait;
      const Progress progress = input_->next(pull);
      if (progress != Progress::kElement) return progress;
      if (Status status = dataset_->spec().check(pull.element); !status.ok())
        return pull.fail(std::move(status).with_prefix(dataset_->prefix()));
      if (seen_.insert(pull.element[0]).second) return progress;
    }
  }

 private:
  Segment& segment_;
  const DatasetRef dataset_;
  const StagePtr input_;
  std::unordered_set<Tensor, HashOfTensor, IdenticalTensors> seen_;
};

Result<DatasetParts> unique_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  const std::vector<DataType>& types = input->spec().types;
  if (types.size() != 1)
    return args.context().fail(
        "elements must be of one component, but they are of {}", types.size());
  if (types[0] != DataType::kInt32 && types[0] != DataType::kInt64 &&
      types[0] != DataType::kString)
    return args.context().fail(
        "elements must be of type int32, int64 or string, not {}",
        dtype_name(types[0]));
  return DatasetParts{
      kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(
            std::make_unique<UniqueStage>(segment, self, std::move(stage)));
      },
      types};
}

}  // namespace

void register_dataset_checking_kernels(KernelRegistry& registry) {
  add_dataset(registry, "AssertCardinalityDataset", assert_cardinality_dataset);
  for (const char* op :
       {"IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset"})
    add_dataset(registry, op, ignore_errors_dataset);
  for (const char* op : {"UniqueDataset", "ExperimentalUniqueDataset"})
    add_dataset(registry, op, unique_dataset);
}

}  // namespace tagflow::devices
