#include "devices/kernels/dataset/iterator.h"

namespace tagflow::devices {

Iterator::~Iterator() = default;

std::string Iterator::describe() const {
  return key_.name.empty() ? std::string("an anonymous iterator")
                           : key_.describe();
}

Result<std::shared_ptr<RunningPipeline>> Iterator::start(
    const KernelContext& context, DatasetRef dataset) {
  return start_at(context, std::move(dataset), std::nullopt);
}

Result<std::shared_ptr<RunningPipeline>> Iterator::start_at(
    const KernelContext& context, DatasetRef dataset,
    std::optional<int64_t> position) {
  TAGFLOW_RETURN_IF_ERROR(spec_.check(dataset->spec(), dataset->describe())
                              .with_prefix(fmt::format("{}: ", describe())));
  auto started = std::make_shared<RunningPipeline>(context, dataset);
  const std::lock_guard lock(mutex_);
  started->skip(position ? *position : std::exchange(begin_, 0));
  std::swap(pipeline_, started);
  dataset_ = std::move(dataset);
  return started;
}

Status Iterator::end_replaced(const std::shared_ptr<RunningPipeline>& before) {
  if (before != nullptr)
    before->end(
        error(Code::kCancelled, "{} was initialised again", describe()));
  // It may have ended meanwhile.
  if (has_ended()) on_end(ended());
  return ended();
}

std::shared_ptr<RunningPipeline> Iterator::pipeline() const {
  const std::lock_guard lock(mutex_);
  return pipeline_;
}

Result<int64_t> Iterator::position() const {
  if (const auto running = pipeline()) return running->position();
  return not_initialised();
}

Result<std::shared_ptr<RunningPipeline>> Iterator::go_to(
    const KernelContext& context, int64_t position) {
  std::optional<DatasetRef> dataset;
  {
    const std::lock_guard lock(mutex_);
    if (pipeline_ == nullptr) return not_initialised();
    dataset = dataset_;
  }
  return start_at(context, *std::move(dataset), position);
}

Status Iterator::not_initialised() const {
  if (Status reason = ended(); !reason.ok()) return reason;
  return error(Code::kFailedPrecondition,
               "{} has no dataset yet: its initializer must run first",
               describe());
}

Result<std::vector<Tensor>> Iterator::save() const {
  const std::lock_guard lock(mutex_);
  return std::vector<Tensor>{numbers_tensor(
      {{pipeline_ == nullptr ? begin_ : pipeline_->position()}})};
}

Status Iterator::restore(const KernelContext& context,
                         std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> numbers, reader.numbers(1));
  if (numbers.size() != 1 || numbers[0] < 0) return damaged_contents(context);
  {
    const std::lock_guard lock(mutex_);
    // A one-shot iterator has begun, and nobody has asked it.
    if (pipeline_ != nullptr)
      pipeline_->skip(numbers[0]);
    else
      begin_ = numbers[0];
  }
  return reader.end();
}

void Iterator::on_end(const Status& reason) {
  std::shared_ptr<RunningPipeline> ended;
  {
    const std::lock_guard lock(mutex_);
    std::swap(pipeline_, ended);
    dataset_.reset();
  }
  if (ended != nullptr) ended->end(reason);
}

}  // namespace tagflow::devices
