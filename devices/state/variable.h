// Variable: a tensor that outlives a step, and changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "devices/kernel.h"
#include "devices/state/guarded_state.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// The shape that a node asks for, which makes a variable: InvalidArgument where
// it has none.
Result<PartialShape> declared_shape(const graph::Node& maker);

// Note [Versions of a variable]
// Each use sees one version of the value. To read it is to share its buffer,
// without a copy. An update that replaces the value leaves the old buffer to
// those who have it; one that changes it works in place where nobody else has
// the buffer, and on a copy otherwise. So a reader that keeps a value for long
// costs the next update a copy.
//
// That would be the whole of it for an update of a few rows of a large table.
// So from the first such update on the variable's buffer is never shared again:
// who reads all of it gets a copy, made while nobody changes it, and gathers
// read their rows from the buffer itself.
//
// Life cycle: made by the first node of its name, without a value;
// initialised by the first assignment; ended by a reset of its container, or
// with its manager.
class Variable final : public GuardedState {
 public:
  static constexpr std::string_view kKind = "variable";
  // A name in a graph may mean one of either: what the ops of TensorFlow 1
  // make is apart.
  static constexpr std::string_view kReferenceKind = "reference variable";

  // `name` is for messages; `dtype` and `shape` are what the graph declares.
  Variable(std::string name, DataType dtype, PartialShape shape)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)) {}

  const std::string& name() const { return name_; }
  DataType dtype() const { return dtype_; }
  const PartialShape& declared_shape() const { return shape_; }
  // 'variable "w" of float[3]'.
  std::string describe() const override;

  // Whether it is such a variable as the node asks for, which makes one.
  bool is_as_declared(const graph::Node& maker) const;

  // How often the value has changed, or was about to. Thread-safe: who has seen
  // the end of an update sees another number than before it.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // --- REQUIRES: the lock is held, in any mode.
  bool is_initialized() const { return value_.valid(); }
  // Not valid where there is none. To be read while the lock is held; who keeps
  // it takes it from read().
  const Tensor& value() const { return value_; }
  // The value to keep, shared or copied, in the memory of the kernel.
  // FailedPrecondition where there is none.
  Result<Tensor> read(const KernelContext& context) const;
  // FailedPrecondition that names the variable, unless it has a value; what
  // ended() says where it has ended.
  Status check_initialized() const;
  // The same, and where the kernel cannot reach the value's memory.
  Status check_readable(const KernelContext& context) const;

  // --- REQUIRES: the lock is held exclusively.
  // Replaces the value. What ended() says where it has ended.
  Status set(Tensor value);
  // Not initialized any more.
  void clear() noexcept override {
    count_change();
    value_.reset();
  }
  // Where the elements of the next value go: into the value itself where nobody
  // else has them and the kernel can write there (can_change() in
  // devices/element_mover.h), else into `fresh`, a new tensor of its shape,
  // which is then to be set(). Errors as those of check_readable().
  Result<Tensor*> place_of_update(const KernelContext& context, Tensor& fresh);
  // Replaces the value by another number. REQUIRES: both are inline scalars
  // (Tensor::is_inline_scalar) of one type.
  void set_scalar(const Tensor& value) {
    count_change();
    value_ = value;
  }
  // The value, of its own buffer, to be changed in place: what was shared has
  // been copied. FailedPrecondition where there is none.
  Result<Tensor*> change(const KernelContext& context);
  // The same for an update of some rows: from now on the buffer is not shared.
  Result<Tensor*> change_rows(const KernelContext& context);
  // Whether that is so. Thread-safe.
  bool is_read_by_copy() const {
    return read_by_copy_.load(std::memory_order_relaxed);
  }
  // How many bytes variables of this process have copied of their values, for
  // who reads them all, or before a change. For tests and benchmarks.
  // Thread-safe.
  static int64_t bytes_copied();
  // What the value had in bytes when it was set. Thread-safe: a hint.
  size_t bytes_hint() const {
    return bytes_hint_.load(std::memory_order_relaxed);
  }

 private:
  void count_change() {
    version_.store(version_.load(std::memory_order_relaxed) + 1,
                   std::memory_order_release);
  }

  const std::string name_;
  const DataType dtype_;
  const PartialShape shape_;
  Tensor value_;
  std::atomic<uint64_t> version_{0};
  std::atomic<bool> read_by_copy_{false};
  std::atomic<size_t> bytes_hint_{0};
};

}  // namespace tagflow::devices
