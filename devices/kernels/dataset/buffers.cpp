// PrefetchDataset and CacheDataset.
#include "devices/kernels/containers/values.h"
#include "devices/kernels/dataset/dataset.h"
#include "devices/kernels/dataset/file_cache.h"
#include "devices/kernels/dataset/pipeline.h"
#include "devices/state/handle_input.h"
#include "devices/state/resource_op.h"

namespace tagflow::devices {

namespace {

// --- Prefetch ---------------------------------------------------------------

Result<DatasetParts> prefetch_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(int64_t size, args.at_least(-1, 1, "buffer_size"));
  // Of TensorFlow's choice: enough that neither side waits for a wake-up.
  constexpr int64_t kChosen = 8;
  if (size < 0)
    size = std::max<int64_t>(kChosen, args.attr<int64_t>("buffer_size_min", 0));
  return DatasetParts{
      input->cardinality(),
      [=](Segment& segment, const Dataset&) -> Result<StagePtr> {
        if (size == 0) return input->start(segment);
        return StagePtr(std::make_unique<AheadStage>(
            segment, [input](Segment& its) { return input->start(its); },
            size_t(size)));
      },
      input->spec().types};
}

// --- Cache ------------------------------------------------------------------

using Elements = std::vector<Element>;

// The elements of a dataset, once all are known. Thread-safe.
class ElementCache {
 public:
  // Null: they are not known yet.
  std::shared_ptr<const Elements> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  // Without effect if they are known.
  void set(Elements elements) {
    auto all = std::make_shared<const Elements>(std::move(elements));
    const std::lock_guard lock(mutex_);
    if (all_ == nullptr) all_ = std::move(all);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    all_ = nullptr;
  }

 private:
  mutable std::mutex mutex_;  // guards the below
  std::shared_ptr<const Elements> all_;
};

class MemoryCache final : public StateObject {
 public:
  static constexpr std::string_view kKind = "memory cache";

  const std::shared_ptr<ElementCache>& cache() const { return cache_; }
  std::string describe() const override { return std::string(kKind); }

 protected:
  void on_end(const Status&) override { cache_->clear(); }

 private:
  const std::shared_ptr<ElementCache> cache_ = std::make_shared<ElementCache>();
};

class CachedStage final : public Stage {
 public:
  explicit CachedStage(std::shared_ptr<const Elements> all)
      : all_(std::move(all)) {}
  Progress next(Pull& pull) override {
    if (at_ == all_->size()) return Progress::kEnd;
    return pull.give((*all_)[at_++]);
  }

 private:
  const std::shared_ptr<const Elements> all_;
  size_t at_ = 0;
};

class CachingStage final : public Stage {
 public:
  CachingStage(StagePtr input, std::shared_ptr<ElementCache> cache)
      : input_(std::move(input)), cache_(std::move(cache)) {}

  Progress next(Pull& pull) override {
    const Progress progress = input_->next(pull);
    // What failed is missing in later iterations, too, as in TensorFlow.
    if (progress == Progress::kElement) seen_.push_back(pull.element);
    if (progress == Progress::kEnd && cache_ != nullptr)
      std::exchange(cache_, nullptr)->set(std::move(seen_));
    return progress;
  }

 private:
  const StagePtr input_;
  std::shared_ptr<ElementCache> cache_;  // null: it has them
  Elements seen_;
};

Result<DatasetParts> cache_dataset(const DatasetArgs& args) {
  TAGFLOW_ASSIGN(const DatasetRef input, args.dataset(0));
  TAGFLOW_ASSIGN(const std::string file, args.text(1, "filename"));
  if (!file.empty())
    return DatasetParts{
        input->cardinality(),
        [=, host = shared_host_access_of(args.context())](
            Segment& segment, const Dataset& self) -> Result<StagePtr> {
          return file_cache_stage(segment, self, input, file, host);
        },
        input->spec().types};
  std::shared_ptr<ElementCache> given;  // null: one for each pipeline
  if (args.context().num_inputs() > 2) {
    const Tensor& handle = args.context().input(2);
    if (handle.num_elements() != 1 ||
        handle.data<ResourceHandle>()->get() != nullptr) {
      TAGFLOW_ASSIGN(MemoryCache * cache,
                     handle_input<MemoryCache>(args.context(), 2));
      given = cache->cache();
    }
  }
  return DatasetParts{
      input->cardinality(),
      [=](Segment& segment, const Dataset& self) -> Result<StagePtr> {
        auto cache = given != nullptr
                         ? given
                         : segment.pipeline().shared_of<ElementCache>(&self);
        if (auto all = cache->all())
          return StagePtr(std::make_unique<CachedStage>(std::move(all)));
        TAGFLOW_ASSIGN(StagePtr stage, input->start(segment));
        return StagePtr(
            std::make_unique<CachingStage>(std::move(stage), std::move(cache)));
      },
      input->spec().types};
}

class MemoryCacheKernel final : public CheapKernel {
 public:
  explicit MemoryCacheKernel(const KernelInfo& info) : resource_(info) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(resource_.set_handle(context, [] {
      return Result<Ref<StateObject>>(
          Ref<StateObject>(make_ref_counted<MemoryCache>()));
    }));
    return context.allocate_output(1, {}).status();
  }
  bool is_bookkeeping() const override { return true; }

 private:
  const ResourceOp resource_;
};

// Ends the resource of input 0, whatever it is.
class DeleteKernel final : public CheapKernel {
 public:
  explicit DeleteKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& handle = context.input(0);
    auto* const object =
        handle.num_elements() == 1
            ? dynamic_cast<StateObject*>(handle.data<ResourceHandle>()->get())
            : nullptr;
    if (object == nullptr)
      return context.fail("input 0 must be the handle of a resource, not {}",
                          handle.describe());
    if (const Commit commit = context.commit(); commit)
      object->end(error(Code::kNotFound, "{} was deleted", object->describe()));
    return {};
  }
  bool is_bookkeeping() const override { return true; }
};

}  // namespace

void register_dataset_buffer_kernels(KernelRegistry& registry) {
  add_dataset(registry, "PrefetchDataset", prefetch_dataset);
  add_dataset(registry, "CacheDataset", cache_dataset);
  add_dataset(registry, "CacheDatasetV2", cache_dataset);
  registry.add<MemoryCacheKernel>("AnonymousMemoryCache");
  for (const char* op : {"DeleteMemoryCache", "DeleteSeedGenerator",
                         "DeleteRandomSeedGenerator", "DeleteIterator"})
    registry.add<DeleteKernel>(op);
}

}  // namespace tagflow::devices
