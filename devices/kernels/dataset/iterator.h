// Iterator: the resource of a dataset that is being iterated.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "devices/kernels/dataset/pipeline.h"
#include "devices/state/saved_contents.h"
#include "devices/state/state_kind.h"

namespace tagflow::devices {

// Life cycle: made without a dataset; initialised, any number of times, each of
// which ends the iteration before; ended. Thread-safe.
//
// A checkpoint has how many elements it has given, and the seeds that were
// drawn for them. An iterator that is restored makes these again when it is
// initialised the next time, and gives those after them. So they must not
// depend on anything else: seed generators must be made anew for an iteration.
class Iterator final : public StateObject, public SavedContents {
 public:
  static constexpr std::string_view kKind = kIteratorKind;

  explicit Iterator(ElementSpec spec) : spec_(std::move(spec)) {}
  ~Iterator() override;

  const ElementSpec& spec() const { return spec_; }
  // From now on it gives the elements of `dataset`, from the first one on, or
  // from the one at which it was saved.
  // The pipeline before, which may be null, is for end_replaced().
  // InvalidArgument if they are of other types or shapes.
  Result<std::shared_ptr<RunningPipeline>> start(const KernelContext& context,
                                                 DatasetRef dataset);
  // Null if it was not initialised.
  std::shared_ptr<RunningPipeline> pipeline() const;
  // FailedPrecondition if it was not initialised.
  Result<IteratorPlace> place() const;
  // Begins again, and gives what comes after that place. The same error;
  // otherwise as start().
  Result<std::shared_ptr<RunningPipeline>> go_to(const KernelContext& context,
                                                 const IteratorPlace& place);
  // Ends what was replaced, which may remove files and wait for others. An
  // error if the iterator itself has ended meanwhile.
  Status end_replaced(const std::shared_ptr<RunningPipeline>& before);
  // The error for an iterator without a pipeline. Never OK.
  Status not_initialised() const;
  std::string describe() const override;

  Result<std::vector<Tensor>> save() const override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 protected:
  void on_end(const Status& reason) override;

 private:
  // Without a position: where the next iteration begins.
  Result<std::shared_ptr<RunningPipeline>> start_at(
      const KernelContext& context, DatasetRef dataset,
      const IteratorPlace* place);

  const ElementSpec spec_;
  mutable std::mutex mutex_;  // guards the below
  std::shared_ptr<RunningPipeline> pipeline_;
  DatasetRef dataset_;   // that of the pipeline, or null
  IteratorPlace begin_;  // where the next iteration begins
};

}  // namespace tagflow::devices
