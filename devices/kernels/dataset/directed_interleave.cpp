// DirectedInterleaveDataset, of which a dataset of numbers says whose element
// is next.
#include <algorithm>
#include <optional>

#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/segment.h"

namespace tagflow::devices {

namespace {

// Of the dataset that selects.
ElementSpec spec_of_numbers() {
  return {{DataType::kInt64}, {PartialShape::scalar()}};
}

class DirectedInterleaveStage final : public Stage {
 public:
  DirectedInterleaveStage(Segment& segment, const Dataset& dataset,
                          StagePtr selector, std::vector<StagePtr> inputs,
                          bool stops_at_first_end)
      : segment_(segment),
        dataset_(&dataset),
        selector_(std::move(selector)),
        inputs_(std::move(inputs)),
        left_(inputs_.size()),
        stops_at_first_end_(stops_at_first_end) {}

  Progress next(Pull& pull) override {
    while (left_ > 0) {
      if (!segment_.take_turn()) return Progress::kWait;
      if (!selected_) {
        const Progress progress = select(pull);
        if (progress == Progress::kEnd) break;
        if (progress != Progress::kElement) return progress;
      }
      StagePtr& input = inputs_[*selected_];
      const Progress progress =
          input == nullptr ? Progress::kEnd : input->next(pull);
      if (progress == Progress::kWait) return progress;
      selected_.reset();
      if (progress != Progress::kEnd) return progress;
      if (input == nullptr) continue;
      input = nullptr;
      left_ = stops_at_first_end_ ? 0 : left_ - 1;
    }
    left_ = 0;
    inputs_.clear();
    return Progress::kEnd;
  }

 private:
  Progress select(Pull& pull) {
    const Progress progress = selector_->next(pull);
    if (progress != Progress::kElement) return progress;
    if (Status status = numbers_.check(pull.element); !status.ok())
      return pull.fail(std::move(status).with_prefix(
          fmt::format("{}the selector: ", dataset_->prefix())));
    const int64_t selected = *pull.element[0].data<int64_t>();
    if (selected < 0 || selected >= int64_t(inputs_.size()))
      return pull.fail(
          invalid_argument("{}dataset {} was selected, but there are only {}",
                           dataset_->prefix(), selected, inputs_.size()));
    selected_ = size_t(selected);
    return progress;
  }

  Segment& segment_;
  const DatasetRef dataset_;
  const StagePtr selector_;
  const ElementSpec numbers_ = spec_of_numbers();
  std::vector<StagePtr> inputs_;  // null: it has ended
  size_t left_;                   // that have not ended
  const bool stops_at_first_end_;
  std::optional<size_t> selected_;  // whose element is next
};

Result<DatasetParts> directed_interleave_dataset(const DatasetArgs& args) {
  const KernelContext& context = args.context();
  TAGFLOW_ASSIGN(const DatasetRef selector, args.dataset(0));
  TAGFLOW_RETURN_IF_ERROR(
      spec_of_numbers()
          .check(selector->spec(), "the selector")
          .with_prefix(fmt::format("[{}] ", context.node().op())));
  std::vector<DatasetRef> inputs;
  for (int i = 1; i < context.num_inputs(); ++i) {
    TAGFLOW_ASSIGN(DatasetRef input, args.dataset(i));
    inputs.push_back(std::move(input));
    if (inputs.back()->spec().types != inputs[0]->spec().types)
      return context.fail("the datasets have elements of different types");
  }
  if (inputs.empty()) return context.fail("there is no dataset to select");
  const bool is_infinite = std::ranges::any_of(inputs, [](const auto& input) {
    return input->cardinality() == kInfiniteCardinality;
  });
  const bool stops = args.attr("stop_on_empty_dataset", false);
  return DatasetParts{
      is_infinite ? kInfiniteCardinality : kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr selecting, selector->start(segment));
        TAGFLOW_ASSIGN(std::vector<StagePtr> stages,
                       start_all(inputs, segment));
        return StagePtr(std::make_unique<DirectedInterleaveStage>(
            segment, self, std::move(selecting), std::move(stages), stops));
      },
      inputs[0]->spec().types};
}

}  // namespace

void register_dataset_directed_interleave_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"})
    add_dataset(registry, op, directed_interleave_dataset);
}

}  // namespace tagflow::devices
