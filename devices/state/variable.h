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

// The shape that the node which makes a variable declares: InvalidArgument
// if it has none.
Result<PartialShape> declared_shape(const graph::Node& maker);

// A node that makes a variable, and has this attribute, replaces one of another
// type or shape that has its name.
inline constexpr char kReplacesVariable[] = "_replaces_variable";

// Note [Versions of a variable]
// Each use sees one version of the value. A read shares its buffer, without a
// copy. An update that replaces the value leaves the old buffer to its other
// holders; one that changes the value works in place if nobody else has the
// buffer, and on a copy otherwise. So a reader that keeps a value for long
// costs the next update a copy.
//
// That copy would dominate an update of a few rows of a large table. So from
// the first such update on the variable's buffer is never shared again: a read
// of the whole value makes a copy, while nobody changes it, and gathers read
// their rows from the buffer itself.
//
// Life cycle: made by the first node of its name, without a value;
// initialised by the first assignment; ended by a reset of its container, or
// with its manager.
class Variable final : public GuardedState {
 public:
  static constexpr std::string_view kKind = "variable";
  // A name in a graph may refer to either kind: variables made by the ops of
  // TensorFlow 1 are separate.
  static constexpr std::string_view kReferenceKind = "reference variable";

  // `name` is for messages; `dtype` and `shape` are what the graph declares.
  Variable(std::string name, DataType dtype, PartialShape shape)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)) {}

  const std::string& name() const { return name_; }
  DataType dtype() const { return dtype_; }
  const PartialShape& declared_shape() const { return shape_; }
  // 'variable "w" of float[3]'.
  std::string describe() const override;

  // Whether it matches the declaration of the node, which makes a variable.
  bool is_as_declared(const graph::Node& maker) const;

  // How often the value has changed, or was about to. Thread-safe: after an
  // update has ended, the number differs from the one before it.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // --- REQUIRES: the lock is held, in any mode.
  bool is_initialized() const { return value_.valid(); }
  // Not valid if it has no value. Only to be read while the lock is held; to
  // keep it, use read().
  const Tensor& value() const { return value_; }
  // The value to keep, shared or copied, in the memory of the kernel.
  // FailedPrecondition if it has no value.
  Result<Tensor> read(const KernelContext& context) const;
  // FailedPrecondition that names the variable, unless it has a value; the
  // status of ended() if it has ended.
  Status check_initialized() const;
  // As check_initialized(), and an error if the kernel cannot access the
  // value's memory.
  Status check_readable(const KernelContext& context) const;

  // --- REQUIRES: the lock is held exclusively.
  // Replaces the value. The status of ended() if it has ended.
  Status set(Tensor value);
  // Makes it uninitialized.
  void clear() noexcept override {
    count_change();
    value_.reset();
  }
  // The target for the elements of the next value: the value itself if
  // nobody else has them and the kernel can write there (can_change() in
  // devices/element_mover.h), else `fresh`, a new tensor of its shape, which
  // must then be set(). Errors as those of check_readable().
  Result<Tensor*> place_of_update(const KernelContext& context, Tensor& fresh);
  // Replaces the value by another number. REQUIRES: both are inline scalars
  // (Tensor::is_inline_scalar) of one type.
  void set_scalar(const Tensor& value) {
    count_change();
    value_ = value;
  }
  // The value in an unshared buffer, to be changed in place: a shared buffer
  // has been copied. FailedPrecondition if it has no value.
  Result<Tensor*> change(const KernelContext& context);
  // As change(), for an update of some rows: from now on the buffer is not
  // shared.
  Result<Tensor*> change_rows(const KernelContext& context);
  // Whether change_rows() was called. Thread-safe.
  bool is_read_by_copy() const {
    return read_by_copy_.load(std::memory_order_relaxed);
  }
  // The bytes of values that variables of this process have copied, for whole
  // reads or before a change. For tests and benchmarks. Thread-safe.
  static int64_t bytes_copied();
  // The bytes of the value when it was set. Thread-safe: a hint.
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
