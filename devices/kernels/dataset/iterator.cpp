#include "devices/kernels/dataset/iterator.h"

namespace tagflow::devices {

Iterator::~Iterator() = default;

std::string Iterator::describe() const {
  return key().name.empty() ? std::string("an anonymous iterator")
                            : key().describe();
}

Result<std::shared_ptr<RunningPipeline>> Iterator::start(
    const KernelContext& context, DatasetRef dataset) {
  return start_at(context, std::move(dataset), nullptr);
}

Result<std::shared_ptr<RunningPipeline>> Iterator::start_at(
    const KernelContext& context, DatasetRef dataset,
    const IteratorPlace* place) {
  TAGFLOW_RETURN_IF_ERROR(spec_.check(dataset->spec(), dataset->describe())
                              .with_prefix(fmt::format("{}: ", describe())));
  auto started = std::make_shared<RunningPipeline>(context, dataset);
  const std::lock_guard lock(mutex_);
  if (place != nullptr)
    started->begin_at(*place, pipeline_.get());
  else
    started->begin_at(std::exchange(begin_, {}), nullptr);
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

Result<IteratorPlace> Iterator::place() const {
  if (const auto running = pipeline()) return running->place();
  return not_initialised();
}

Result<std::shared_ptr<RunningPipeline>> Iterator::go_to(
    const KernelContext& context, const IteratorPlace& place) {
  DatasetRef dataset;
  {
    const std::lock_guard lock(mutex_);
    if (pipeline_ == nullptr) return not_initialised();
    dataset = dataset_;
  }
  return start_at(context, std::move(dataset), &place);
}

Status Iterator::not_initialised() const {
  if (Status reason = ended(); !reason.ok()) return reason;
  return error(Code::kFailedPrecondition,
               "{} has no dataset yet: its initializer must run first",
               describe());
}

Result<std::vector<Tensor>> Iterator::save() const {
  const std::lock_guard lock(mutex_);
  const IteratorPlace place =
      pipeline_ == nullptr ? begin_ : pipeline_->place();
  std::vector<int64_t> numbers{place.position};
  std::vector<Tensor> saved(1);
  for (const auto& [node, seeds] : place.drawn) {
    numbers.insert(numbers.end(), {seeds.seed, seeds.seed2});
    saved.push_back(Tensor::scalar(node));
  }
  saved[0] = numbers_tensor(numbers);
  return saved;
}

Status Iterator::restore(const KernelContext& context,
                         std::span<const Tensor> saved) {
  ContentsReader reader(context, saved);
  TAGFLOW_ASSIGN(const std::vector<int64_t> numbers, reader.numbers(1));
  if (numbers.size() % 2 != 1 || numbers[0] < 0)
    return damaged_contents(context);
  IteratorPlace place{numbers[0], {}};
  TAGFLOW_ASSIGN(const auto nodes, reader.tensors(numbers.size() / 2));
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].dtype() != DataType::kString || nodes[i].num_elements() != 1)
      return damaged_contents(context);
    place.drawn[*nodes[i].data<std::string>()] = {numbers[2 * i + 1],
                                                  numbers[2 * i + 2]};
  }
  {
    const std::lock_guard lock(mutex_);
    // A one-shot iterator has begun, and nobody has asked it.
    if (pipeline_ != nullptr)
      pipeline_->begin_at(place, nullptr);
    else
      begin_ = std::move(place);
  }
  return reader.end();
}

void Iterator::on_end(const Status& reason) {
  std::shared_ptr<RunningPipeline> ended;
  {
    const std::lock_guard lock(mutex_);
    std::swap(pipeline_, ended);
    dataset_ = {};
  }
  if (ended != nullptr) ended->end(reason);
}

}  // namespace tagflow::devices
