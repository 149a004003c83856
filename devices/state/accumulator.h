// Accumulators: gradients of several runs, summed until enough have arrived.
#pragma once

#include <map>
#include <string>

#include "devices/state/actor_kernel.h"
#include "devices/state/saved_contents.h"

namespace tagflow::devices {

// The settings from the node that makes an accumulator.
struct AccumulatorSpec {
  bool operator==(const AccumulatorSpec&) const = default;
  std::string describe() const;

  DataType dtype = DataType::kInvalid;
  PartialShape shape;
  bool is_mean = true;
  bool is_sparse = false;
};

// A gradient comes with the step that it was computed for. A gradient of an
// earlier step than the accumulator's is dropped; taking the result begins the
// next step.
class ConditionalAccumulator final : public StateActor, public SavedContents {
 public:
  static constexpr std::string_view kKind = "accumulator";

  ConditionalAccumulator(std::string name, AccumulatorSpec spec)
      : name_(std::move(name)), spec_(std::move(spec)) {}

  const AccumulatorSpec& spec() const { return spec_; }
  std::string describe() const override;
  std::string describe_state() const override;
  // InvalidArgument unless dtype and sparseness match. Thread-safe.
  Status check_use(const KernelContext& context, DataType dtype,
                   bool is_sparse) const;
  // The number of gradients in it. Thread-safe.
  int64_t count() const { return count_.load(std::memory_order_relaxed); }

  // --- Called inside.
  bool is_stale(int64_t local_step) const { return local_step < step_; }
  void set_step(int64_t step) { step_ = step; }
  Status add(const KernelContext& context, const Tensor& gradient);
  // Adds rows `indices` of a gradient whose other rows are zeros.
  Status add_rows(const KernelContext& context, const Tensor& indices,
                  const Tensor& values);
  // Sets output 0, or the three outputs of a sparse one.
  Status take(KernelContext& context);
  Result<std::vector<Tensor>> save() const override;
  Status restore(const KernelContext& context,
                 std::span<const Tensor> saved) override;

 protected:
  void clear() noexcept override;

 private:
  struct Row {
    Tensor sum;
    int64_t count = 0;  // gradients that had it
  };
  Status take_rows(KernelContext& context);

  const std::string name_;
  const AccumulatorSpec spec_;
  std::atomic<int64_t> count_{0};
  int64_t step_ = 0;
  Tensor sum_;
  std::map<int64_t, Row> rows_;
  MemoryCharge charge_;  // of the rows, without their sums
  Shape row_shape_;      // if there are rows
};

}  // namespace tagflow::devices
