// Pipeline: what the stages of one iteration of a dataset share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/function_host.h"
#include "devices/kernel.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/segment.h"

namespace tagflow::devices {

// See Note [Pipelines] in stage.h. Owned by its segments and whoever started
// it. Thread-safe.
class Pipeline : public std::enable_shared_from_this<Pipeline> {
 public:
  // For the host, the seed and the memory of the kernel's session.
  explicit Pipeline(const KernelContext& context);

  // Null if the kernel runs where no functions can be called.
  FunctionHost* host() const { return host_.get(); }
  // Of all calls. REQUIRES: there is a host.
  const std::shared_ptr<CallGroup>& calls() const { return calls_; }
  Allocator& allocator() const { return allocator_; }
  uint64_t seed() const { return seed_; }

  // What is worth to run at once: the number of workers.
  int parallelism() const;
  // How many calls may be open where a graph asks for so many, or, if that is
  // negative, leaves it to us.
  int64_t open_calls(int64_t wanted) const;
  // Runs `work` soon on a worker; at once, on this thread, without a host.
  void post(std::function<void()> work) const;

  // What an iteration has outside of its stages, as a file that it writes.
  class Part {
   public:
    virtual ~Part() = default;
    // The iteration has ended: lets go of it at once, while stages may still
    // use this. Thread-safe.
    virtual void end() noexcept = 0;
  };
  // False if the iteration has ended.
  bool add(const std::shared_ptr<Part>& part);
  void end_parts() noexcept;

  // The T that all stages of that dataset share, as a cache; made when it is
  // first asked for, and kept as long as somebody else has the dataset.
  // REQUIRES: always the same T for a dataset.
  template <class T>
  std::shared_ptr<T> shared_of(const Dataset* dataset) {
    const std::lock_guard lock(mutex_);
    auto found = shared_.find(dataset);
    if (found == shared_.end()) {
      sweep();
      found = shared_
                  .emplace(dataset, Shared{Ref<const VariantValue>(dataset),
                                           std::make_shared<T>()})
                  .first;
    }
    return std::static_pointer_cast<T>(found->second.object);
  }

 private:
  struct Shared {
    Ref<const VariantValue> dataset;
    std::shared_ptr<void> object;
  };
  // Forgets datasets that nobody else has, when there are many. REQUIRES:
  // mutex_ is held.
  void sweep();

  const std::shared_ptr<FunctionHost> host_;
  const std::shared_ptr<CallGroup> calls_;
  Allocator& allocator_;
  const uint64_t seed_;
  std::mutex mutex_;  // guards the below
  std::map<const VariantValue*, Shared> shared_;
  size_t next_sweep_ = 64;
  std::vector<std::weak_ptr<Part>> parts_;
  bool has_ended_ = false;
};

class WaitingKernel;  // devices/kernels/dataset/element_answer.h

// Owns the root of a pipeline. Thread-safe.
class RunningPipeline {
 public:
  RunningPipeline(const KernelContext& context, DatasetRef dataset);
  // Ends it.
  ~RunningPipeline();
  RunningPipeline(const RunningPipeline&) = delete;
  RunningPipeline& operator=(const RunningPipeline&) = delete;

  // Answers the request, unless its run is cancelled before.
  void ask(const std::shared_ptr<WaitingKernel>& request);
  // As of RootSegment.
  int64_t position() const { return root_->position(); }
  void skip(int64_t count) { root_->skip(count); }
  // Cancels the open calls, and refuses all requests.
  void end(const Status& reason);

 private:
  const std::shared_ptr<Pipeline> pipeline_;
  const std::shared_ptr<RootSegment> root_;
};

}  // namespace tagflow::devices
