#include "devices/kernels/dataset/pipeline.h"

#include <algorithm>

#include "devices/files/host_access.h"

namespace tagflow::devices {

Pipeline::Pipeline(const KernelContext& context)
    : host_(host_access_of(context).functions()),
      calls_(host_ == nullptr ? nullptr : host_->make_group()),
      allocator_(context.host_memory()),
      seed_(context.step().seed) {}

int Pipeline::parallelism() const {
  return host_ == nullptr ? 1 : host_->parallelism();
}

int64_t Pipeline::open_calls(int64_t wanted) const {
  // Each holds an element; more of them do not keep more workers busy.
  constexpr int64_t kMostOfEach = 64;
  if (wanted < 0) return parallelism();
  return std::clamp<int64_t>(wanted, 1, kMostOfEach * parallelism());
}

void Pipeline::post(std::function<void()> work) const {
  if (host_ == nullptr) return work();
  host_->post(std::move(work));
}

void Pipeline::sweep() {
  if (shared_.size() < next_sweep_) return;
  std::erase_if(shared_, [](const auto& entry) {
    return entry.second.dataset->unique();
  });
  next_sweep_ = 2 * shared_.size() + 64;
}

RunningPipeline::RunningPipeline(const KernelContext& context,
                                 DatasetRef dataset)
    : pipeline_(std::make_shared<Pipeline>(context)),
      root_(std::make_shared<RootSegment>(
          pipeline_, [dataset = std::move(dataset)](Segment& segment) {
            return dataset->start(segment);
          })) {}

RunningPipeline::~RunningPipeline() {
  end(error(Code::kCancelled, "the iteration was ended"));
}

void RunningPipeline::end(const Status& reason) {
  root_->end(reason);
  if (pipeline_->host() != nullptr) pipeline_->calls()->cancel();
}

}  // namespace tagflow::devices
