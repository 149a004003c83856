// BatchDataset, MapAndBatchDataset and UnbatchDataset.
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

}  // namespace

void register_dataset_batch_kernels(KernelRegistry& registry) {
  add_dataset(registry, "BatchDataset", batch_dataset);
  add_dataset(registry, "BatchDatasetV2", batch_dataset);
  add_dataset(registry, "ParallelBatchDataset", batch_dataset);
  for (const char* op :
       {"MapAndBatchDataset", "ExperimentalMapAndBatchDataset"})
    add_dataset(registry, op, map_and_batch_dataset);
  for (const char* op : {"UnbatchDataset", "ExperimentalUnbatchDataset"})
    add_dataset(registry, op, unbatch_dataset);
}

}  // namespace tagflow::devices
