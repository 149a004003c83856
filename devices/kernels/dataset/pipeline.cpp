#include "devices/kernels/dataset/pipeline.h"

#include <algorithm>

#include "devices/files/host_access.h"
#include "devices/kernels/dataset/element_answer.h"

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

ShuffleSeeds Pipeline::seeds_of(const std::string& node,
                                const std::function<ShuffleSeeds()>& draw) {
  const std::lock_guard lock(mutex_);
  auto found = drawn_.find(node);
  if (found == drawn_.end()) found = drawn_.emplace(node, draw()).first;
  ShuffleSeeds seeds = found->second;
  // The first one is as it was drawn.
  seeds.seed = int64_t(uint64_t(seeds.seed) +
                       uint64_t(seeds_given_[node]++) * 0x9e3779b97f4a7c15);
  return seeds;
}

Ref<SharedSource> Pipeline::source(const Ref<SharedSource>& source) {
  const auto known = [&]() -> Ref<SharedSource> {
    const auto found = sources_.find(source.get());
    if (found == sources_.end()) return {};
    return found->second.used ? found->second.used : source;
  };
  {
    const std::lock_guard lock(mutex_);
    if (auto used = known()) return used;
  }
  // Without the lock: a source that draws holds its own, and takes this one.
  // Nobody here has used the source before it is entered below.
  Ref<SharedSource> start = source->copy();
  const std::lock_guard lock(mutex_);
  if (sources_.size() >= next_source_sweep_) {
    // Those of functions' results that are gone.
    std::erase_if(sources_,
                  [](const auto& entry) { return entry.second.key->unique(); });
    next_source_sweep_ = 2 * sources_.size() + 64;
  }
  sources_.emplace(source.get(), Source{source, std::move(start), {}});
  return known();
}

DrawnByNode Pipeline::drawn() const {
  const std::lock_guard lock(mutex_);
  return drawn_;
}

void Pipeline::begin_again(DrawnByNode drawn, const Pipeline* before) {
  std::map<const SharedSource*, Source> sources;
  if (before != nullptr) {
    const std::lock_guard lock(before->mutex_);
    sources = before->sources_;
  }
  for (auto& [key, source] : sources) source.used = source.start->copy();
  const std::lock_guard lock(mutex_);
  drawn_ = std::move(drawn);
  sources_ = std::move(sources);
}

bool Pipeline::add(const std::shared_ptr<Part>& part) {
  const std::lock_guard lock(mutex_);
  std::erase_if(parts_, [](const auto& known) { return known.expired(); });
  if (!has_ended_) parts_.push_back(part);
  return !has_ended_;
}

void Pipeline::end_parts() noexcept {
  std::vector<std::weak_ptr<Part>> parts;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    parts.swap(parts_);
  }
  for (const auto& part : parts)
    if (const auto alive = part.lock()) alive->end();
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

void RunningPipeline::ask(const std::shared_ptr<WaitingKernel>& request) {
  if (request->context().on_cancel(request)) return root_->ask(request);
  if (request->claim())
    request->refuse(error(Code::kCancelled, "the run was cancelled"));
}

void RunningPipeline::end(const Status& reason) {
  // Before the stages, which may let go of them at any time after their end.
  pipeline_->end_parts();
  root_->end(reason);
  if (pipeline_->host() != nullptr) pipeline_->calls()->cancel();
}

}  // namespace tagflow::devices
