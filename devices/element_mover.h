// ElementMover: operations of array kernels and products on elements that only
// a device can access.
#pragma once

#include <boost/container/static_vector.hpp>
#include <span>
#include <string_view>

#include "devices/copy.h"
#include "devices/kernel.h"
#include "devices/product_batch.h"

namespace tagflow::devices {

// A step of an optimizer on whole tensors of one type and shape.
struct DenseTraining {
  static constexpr size_t kMostStates = 4;
  template <class T>
  using States = boost::container::static_vector<T, kMostStates>;

  std::string_view rule;  // one of devices/training_rules.h
  bool option = false;
  std::span<const double> scalars;
  const Tensor* gradient = nullptr;
  // The variable and its slots; `after` may be the same as `before`.
  States<const Tensor*> before;
  States<Tensor*> after;
};

// An allocator that is also an ElementMover lets kernels of the CPU work on its
// memory: these check arguments, plan and allocate, and call strided_copy() and
// the like, which pass the plan on to the mover of the context's memory. Such a
// kernel must access elements only through these functions. Inputs that it
// reads itself, as sizes and axes, must be in the host's memory: its
// registration names them.
//
// Operations run in the order of the device's launches. An error becomes the
// launch's.
class ElementMover {
 public:
  virtual ~ElementMover() = default;
  // See strided_copy() of devices/copy.h. The source may be in the host's
  // memory, too. REQUIRES: no count is 0.
  virtual void move(const StridedCopy& copy, const Tensor& from,
                    Tensor& to) = 0;
  // Sets all bytes to zero.
  virtual void clear(Tensor& to) = 0;
  // See multiply() of devices/kernels/product/products.h. REQUIRES: out has
  // elements.
  virtual Status multiply(const KernelContext& context,
                          const ProductBatch& batch, const Tensor& a,
                          const Tensor& b, Tensor& out) = 0;
  // out = a + b, or a - b, of tensors of one type and shape; `out` may be one
  // of them. Tensors that are only read may be in the host's memory.
  // Unimplemented for types that the device cannot add.
  virtual Status add(const KernelContext& context, const Tensor& a,
                     const Tensor& b, bool subtracts, Tensor& out) = 0;
  // Tensors that are only read may be in the host's memory. Unimplemented if
  // the device does not implement the rule.
  virtual Status train(const KernelContext& context,
                       const DenseTraining& training) = 0;
};

// The mover of the memory of the kernel's outputs, or null if the CPU does
// the work.
inline ElementMover* mover_of(const KernelContext& context) {
  Allocator& allocator = context.allocator();
  return allocator.host_visible() ? nullptr
                                  : dynamic_cast<ElementMover*>(&allocator);
}

// The mover for one tensor, or null: strings and handles are always the host's.
inline ElementMover* mover_for(const KernelContext& context,
                               const Tensor& tensor) {
  return is_plain(tensor.dtype()) ? mover_of(context) : nullptr;
}

// Whether the kernel can access the tensor's elements to write them: a mover
// writes only to its own memory, and not into a token.
inline bool can_change(const KernelContext& context, const Tensor& tensor) {
  return mover_of(context) == nullptr ||
         (tensor.buffer() != nullptr &&
          context.allocator().shares_memory(*tensor.buffer()->allocator));
}

}  // namespace tagflow::devices
