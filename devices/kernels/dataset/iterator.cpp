#include "devices/kernels/dataset/iterator.h"

namespace tagflow::devices {

Iterator::~Iterator() = default;

std::string Iterator::describe() const {
  return key_.name.empty() ? std::string("an anonymous iterator")
                           : key_.describe();
}

Status Iterator::start(const KernelContext& context, DatasetRef dataset) {
  TAGFLOW_RETURN_IF_ERROR(spec_.check(dataset->spec(), dataset->describe())
                              .with_prefix(fmt::format("{}: ", describe())));
  auto started = std::make_shared<RunningPipeline>(context, std::move(dataset));
  {
    const std::lock_guard lock(mutex_);
    std::swap(pipeline_, started);
  }
  if (started != nullptr)
    started->end(
        error(Code::kCancelled, "{} was initialised again", describe()));
  // It may have ended meanwhile.
  if (has_ended()) on_end(ended());
  return ended();
}

std::shared_ptr<RunningPipeline> Iterator::pipeline() const {
  const std::lock_guard lock(mutex_);
  return pipeline_;
}

void Iterator::on_end(const Status& reason) {
  std::shared_ptr<RunningPipeline> ended;
  {
    const std::lock_guard lock(mutex_);
    std::swap(pipeline_, ended);
  }
  if (ended != nullptr) ended->end(reason);
}

}  // namespace tagflow::devices
