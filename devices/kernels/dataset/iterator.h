// Iterator: the resource of a dataset that is being iterated.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "devices/kernels/dataset/pipeline.h"
#include "devices/state/resource_manager.h"

namespace tagflow::devices {

// Life cycle: made without a dataset; initialised, any number of times, each of
// which ends the iteration before; ended. Thread-safe.
class Iterator final : public StateObject {
 public:
  static constexpr std::string_view kKind = "iterator";

  // `key` has no name if the iterator is anonymous.
  Iterator(ResourceKey key, ElementSpec spec)
      : key_(std::move(key)), spec_(std::move(spec)) {}
  ~Iterator() override;

  const ResourceKey& key() const { return key_; }
  const ElementSpec& spec() const { return spec_; }
  // From now on it gives the elements of `dataset`, from the first one on.
  // InvalidArgument if they are of other types or shapes.
  Status start(const KernelContext& context, DatasetRef dataset);
  // Null if it was not initialised.
  std::shared_ptr<RunningPipeline> pipeline() const;
  std::string describe() const override;

 protected:
  void on_end(const Status& reason) override;

 private:
  const ResourceKey key_;
  const ElementSpec spec_;
  mutable std::mutex mutex_;  // guards the below
  std::shared_ptr<RunningPipeline> pipeline_;
};

}  // namespace tagflow::devices
