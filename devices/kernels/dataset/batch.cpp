// BatchDataset, MapAndBatchDataset, UnbatchDataset and WindowDataset.
#include <algorithm>
#include <deque>

#include "devices/kernels/dataset/batch_rows.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/elements.h"
#include "devices/kernels/dataset/map.h"

namespace tagflow::devices {

namespace {

// --- Batches ----------------------------------------------------------------

class BatchStage final : public Stage {
 public:
  BatchStage(Segment& segment, const Dataset& dataset, StagePtr input,
             const BatchSpec& spec)
      : segment_(segment),
        dataset_(&dataset),
        rows_(segment, dataset, std::move(input), spec) {}

  Progress next(Pull& pull) override {
    const Progress progress = rows_.collect(pull);
    if (progress != Progress::kElement) return progress;
    Result<Element> batch =
        batch_of(rows_.rows(), segment_.pipeline().allocator());
    rows_.clear();
    if (!batch.ok())
      return pull.fail(
          std::move(batch).status().with_prefix(dataset_->prefix()));
    return pull.give(*std::move(batch));
  }

 private:
  Segment& segment_;
  const DatasetRef dataset_;
  BatchRows rows_;
};

Result<DatasetParts> batch_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  BatchSpec spec;
  TAGFLOW_ASSIGN(spec.size, args.at_least(1, 1, "batch_size"));
  if (args.context().num_inputs() > 2) {
    TAGFLOW_ASSIGN(spec.drops_rest,
                   args.flag(args.from_end(1), "drop_remainder"));
  }
  // TensorFlow makes these a MapAndBatchDataset before it runs them.
  spec.has_places_for_errors =
      args.context().node().op().starts_with("BatchDataset") &&
      (input->op() == "MapDataset" ||
       input->op().starts_with("ParallelMapDataset"));
  return DatasetParts{
      batches_of(input->cardinality(), spec),
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<BatchStage>(segment, self,
                                                     std::move(stage), spec));
      },
      input->spec().types};
}

Result<DatasetParts> map_and_batch_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  BatchSpec spec{.has_places_for_errors = true};
  TAGFLOW_ASSIGN(spec.size, args.at_least(1, args.from_end(3), "batch_size"));
  TAGFLOW_ASSIGN(const int64_t calls, args.parallel_calls(args.from_end(2)));
  TAGFLOW_ASSIGN(spec.drops_rest,
                 args.flag(args.from_end(1), "drop_remainder"));
  TAGFLOW_ASSIGN(const CapturedFunction function, args.function("f", 1));
  const bool keeps = args.attr("preserve_cardinality", false);
  return DatasetParts{
      batches_of(input->cardinality(), spec),
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        TAGFLOW_ASSIGN(StagePtr mapped,
                       parallel_map(segment, self, std::move(stage), *input,
                                    function, calls, keeps));
        return StagePtr(std::make_unique<BatchStage>(segment, self,
                                                     std::move(mapped), spec));
      }};
}

// --- The reverse ------------------------------------------------------------

class UnbatchStage final : public Stage {
 public:
  UnbatchStage(Segment& segment, const Dataset& dataset, StagePtr input)
      : segment_(segment), dataset_(&dataset), input_(std::move(input)) {}

  Progress next(Pull& pull) override {
    while (batch_.empty() || row_ >= batch_[0].dim(0)) {
      if (!segment_.take_turn()) return Progress::kWait;
      batch_.clear();
      const Progress progress = input_->next(pull);
      if (progress != Progress::kElement) return progress;
      for (const Tensor& component : pull.element)
        if (component.rank() == 0 || component.dim(0) != pull.element[0].dim(0))
          return pull.fail(invalid_argument(
              "{}the components of an element must have the same first "
              "dimension, but one is {} and the first is {}",
              dataset_->prefix(), component.describe(),
              pull.element[0].describe()));
      batch_ = std::move(pull.element);
      row_ = 0;
    }
    Result<Element> row =
        row_of(batch_, row_++, segment_.pipeline().allocator());
    if (!row.ok()) return pull.fail(std::move(row).status());
    return pull.give(*std::move(row));
  }

 private:
  Segment& segment_;
  const DatasetRef dataset_;
  const StagePtr input_;
  Element batch_;
  int64_t row_ = 0;
};

Result<DatasetParts> unbatch_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  return DatasetParts{
      kUnknownCardinality,
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(
            std::make_unique<UnbatchStage>(segment, self, std::move(stage)));
      },
      input->spec().types};
}

// --- Windows ----------------------------------------------------------------

// Gives tensors that exist, one by one.
class ListStage final : public Stage {
 public:
  explicit ListStage(const std::vector<Tensor>& tensors) : tensors_(tensors) {}
  Progress next(Pull& pull) override {
    if (at_ == tensors_.size()) return Progress::kEnd;
    return pull.give({tensors_[at_++]});
  }

 private:
  const std::vector<Tensor> tensors_;
  size_t at_ = 0;
};

Result<Tensor> list_dataset(std::vector<Tensor> tensors, DataType type,
                            PartialShape shape) {
  const auto count = int64_t(tensors.size());
  auto list = make_ref_counted<Dataset>(
      "WindowDataset", "a window", ElementSpec{{type}, {std::move(shape)}},
      DatasetParts{count,
                   [tensors = std::move(tensors)](
                       Segment&, const Dataset&) -> Result<StagePtr> {
                     return StagePtr(std::make_unique<ListStage>(tensors));
                   }});
  TAGFLOW_ASSIGN(Tensor handle, Tensor::allocate(DataType::kVariant, {}));
  *handle.mutable_data<Variant>() = Variant(std::move(list));
  return handle;
}

struct WindowSpec {
  int64_t size = 1;
  int64_t shift = 1;
  int64_t stride = 1;
  bool drops_rest = false;
};

class WindowStage final : public Stage {
 public:
  WindowStage(Segment& segment, StagePtr input, const Dataset& elements,
              const WindowSpec& spec)
      : segment_(segment),
        input_(std::move(input)),
        elements_(&elements),
        spec_(spec) {}

  Progress next(Pull& pull) override {
    while (!is_over_ && (to_skip_ > 0 || held_.size() < span())) {
      if (!segment_.take_turn()) return Progress::kWait;
      const Progress progress = input_->next(pull);
      if (progress == Progress::kWait) return progress;
      // An error is a place of the windows that have it, and of no other.
      if (progress == Progress::kEnd)
        is_over_ = true;
      else if (to_skip_ > 0)
        --to_skip_;
      else if (progress == Progress::kFailed)
        held_.push_back({{}, std::move(pull.error)});
      else
        held_.push_back({std::move(pull.element), {}});
    }
    if (held_.empty() || (spec_.drops_rest && held_.size() < span()))
      return Progress::kEnd;
    Result<Element> window = make_window();
    const size_t gone = std::min<uint64_t>(held_.size(), uint64_t(spec_.shift));
    held_.erase(held_.begin(), held_.begin() + std::ptrdiff_t(gone));
    to_skip_ = spec_.shift - int64_t(gone);
    if (!window.ok()) return pull.fail(std::move(window).status());
    return pull.give(*std::move(window));
  }

 private:
  // The elements from the first to the last of a window.
  uint64_t span() const {
    return uint64_t(spec_.size - 1) * uint64_t(spec_.stride) + 1;
  }
  Result<Element> make_window() const {
    const ElementSpec& spec = elements_->spec();
    std::vector<std::vector<Tensor>> lists(spec.types.size());
    for (uint64_t i = 0; i < held_.size() && i < span();
         i += uint64_t(spec_.stride)) {
      const auto& [element, failed] = held_[i];
      TAGFLOW_RETURN_IF_ERROR(failed);
      if (element.size() != lists.size())
        return invalid_argument("an element has {} components, not {}",
                                element.size(), lists.size());
      for (size_t c = 0; c < lists.size(); ++c) lists[c].push_back(element[c]);
    }
    Element window;
    for (size_t c = 0; c < lists.size(); ++c) {
      TAGFLOW_ASSIGN(Tensor handle,
                     list_dataset(std::move(lists[c]), spec.types[c],
                                  c < spec.shapes.size() ? spec.shapes[c]
                                                         : PartialShape()));
      window.push_back(std::move(handle));
    }
    return window;
  }

  Segment& segment_;
  const StagePtr input_;
  const DatasetRef elements_;
  const WindowSpec spec_;
  std::deque<std::pair<Element, Status>> held_;
  int64_t to_skip_ = 0;  // elements between two windows
  bool is_over_ = false;
};

Result<DatasetParts> window_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  WindowSpec spec;
  TAGFLOW_ASSIGN(spec.size, args.at_least(1, 1, "size"));
  TAGFLOW_ASSIGN(spec.shift, args.at_least(1, 2, "shift"));
  TAGFLOW_ASSIGN(spec.stride, args.at_least(1, 3, "stride"));
  TAGFLOW_ASSIGN(spec.drops_rest, args.flag(4, "drop_remainder"));
  const auto span = checked_multiply(spec.size - 1, spec.stride);
  if (!span || *span == std::numeric_limits<int64_t>::max())
    return args.context().fail("size {} with stride {} is too large", spec.size,
                               spec.stride);
  int64_t cardinality = input->cardinality();
  if (cardinality >= 0) {
    const int64_t firsts = spec.drops_rest ? cardinality - *span : cardinality;
    cardinality = firsts <= 0 ? 0 : (firsts - 1) / spec.shift + 1;
  }
  return DatasetParts{
      cardinality,
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(std::make_unique<WindowStage>(segment, std::move(stage),
                                                      *input, spec));
      },
      std::vector<DataType>(input->spec().types.size(), DataType::kVariant)};
}

}  // namespace

void register_dataset_batch_kernels(KernelRegistry& registry) {
  add_dataset(registry, "BatchDataset", batch_dataset);
  add_dataset(registry, "BatchDatasetV2", batch_dataset);
  add_dataset(registry, "ParallelBatchDataset", batch_dataset);
  add_dataset(registry, "MapAndBatchDataset", map_and_batch_dataset);
  add_dataset(registry, "UnbatchDataset", unbatch_dataset);
  add_dataset(registry, "WindowDataset", window_dataset);
}

}  // namespace tagflow::devices
