// Pipeline: what the stages of one iteration of a dataset share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "devices/function_host.h"
#include "devices/kernel.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/segment.h"
#include "devices/state/resource_manager.h"

namespace tagflow::devices {

struct ShuffleSeeds {
  int64_t seed = 0;
  int64_t seed2 = 0;
};
// What was drawn for the nodes of a pipeline that have no seeds, by name.
using DrawnByNode = std::map<std::string, ShuffleSeeds>;

// State that pipelines use and change, one after the other. Thread-safe.
class SharedSource : public StateObject {
 public:
  virtual Ref<SharedSource> copy() const = 0;
};

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

  // Seeds for a node that has none: draw() gives them, once for a pipeline, and
  // further ones follow from these.
  ShuffleSeeds seeds_of(const std::string& node,
                        const std::function<ShuffleSeeds()>& draw);
  // `source`, or what stands for it in a pipeline that begins again.
  Ref<SharedSource> source(const Ref<SharedSource>& source);
  DrawnByNode drawn() const;
  // Uses those seeds again, and, if `before` is not null, the sources as they
  // were when that pipeline began. REQUIRES: nothing was drawn yet.
  void begin_again(DrawnByNode drawn, const Pipeline* before);

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
  struct Source {
    Ref<SharedSource> key;
    Ref<SharedSource> start;  // a copy, as it was at its first use
    Ref<SharedSource> used;   // null: `key` itself
  };
  mutable std::mutex mutex_;  // guards the below
  DrawnByNode drawn_;
  std::map<std::string, int64_t> seeds_given_;  // for each node
  std::map<const SharedSource*, Source> sources_;
  size_t next_source_sweep_ = 64;
  std::map<const VariantValue*, Shared> shared_;
  size_t next_sweep_ = 64;
  std::vector<std::weak_ptr<Part>> parts_;
  bool has_ended_ = false;
};

// Where an iteration is.
struct IteratorPlace {
  int64_t position = 0;  // as of RootSegment
  DrawnByNode drawn;
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
  IteratorPlace place() const { return {position(), pipeline_->drawn()}; }
  // Makes the same elements again up to that place, and gives those after it.
  // REQUIRES: nobody has asked yet.
  void begin_at(const IteratorPlace& place, const RunningPipeline* before) {
    pipeline_->begin_again(place.drawn,
                           before == nullptr ? nullptr : &*before->pipeline_);
    root_->skip(place.position);
  }
  // Cancels the open calls, and refuses all requests.
  void end(const Status& reason);

 private:
  const std::shared_ptr<Pipeline> pipeline_;
  const std::shared_ptr<RootSegment> root_;
};

}  // namespace tagflow::devices
