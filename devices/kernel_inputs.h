// Reads the parameters of an array kernel: axes, sizes and indices. They are
// tensors of several integer types, and all must be checked.
#pragma once

#include <cstdint>
#include <string_view>

#include "devices/kernel.h"
#include "graph/ops/index_values.h"

namespace tagflow::devices {

using graph::index_at;
using graph::index_elements;

// The single element of an integer input; `name` is for the message.
Result<int64_t> index_scalar(const KernelContext& context, int input,
                             std::string_view name);
// Stores the elements of an integer input that is a vector.
Status index_vector(const KernelContext& context, int input,
                    std::string_view name, Shape::Dims& values);
// As index_vector(), for an input that is a shape. As in TensorFlow, a scalar
// counts as a vector of one element if shape inference did not see it.
Status shape_vector(const KernelContext& context, int input,
                    std::string_view name, Shape::Dims& values);

// Writes `value` as element i of a tensor of type int32 or int64.
// InvalidArgument if it does not fit.
Status store_index(const KernelContext& context, Tensor& tensor, int64_t i,
                   int64_t value);

// An axis of a tensor of `rank`, counted from the end if negative, as
// 0 <= axis < rank. InvalidArgument outside [-rank, rank).
Result<int> checked_axis(const KernelContext& context, int64_t axis, int rank,
                         std::string_view name = "axis");

// The attribute, which the op's definition guarantees to exist.
template <class T>
T attr_of(const KernelInfo& info, std::string_view name) {
  Result<T> value = info.attr<T>(name);
  return value.ok() ? std::move(value).value() : T();
}

// A kernel whose time is about proportional to the bytes it handles. Its cost
// is never requested if the bytes are known to be few when the graph is built.
class BytesKernel : public Kernel {
 public:
  // The tensors whose sizes determine the work.
  enum class Work : uint8_t { kInputs, kOutputs };
  BytesKernel(const KernelInfo& info, Work work,
              double nanoseconds_per_byte = 0.1);

  double cost(const KernelContext& context) const final;
  bool may_be_expensive() const final { return may_be_expensive_; }

 protected:
  // The bytes to handle: those of all inputs, if not overridden.
  virtual double work_bytes(const KernelContext& context) const;

 private:
  double nanoseconds_per_byte_;
  bool may_be_expensive_;
};

}  // namespace tagflow::devices
