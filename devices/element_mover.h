// ElementMover: what array kernels and products do to elements that only a
// device can reach.
#pragma once

#include <boost/container/static_vector.hpp>
#include <span>
#include <string_view>

#include "devices/cpu/array/copy.h"
#include "devices/cpu/dense/products.h"
#include "devices/kernel.h"

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
  // The variable and its slots; `after` may be what is before.
  States<const Tensor*> before;
  States<Tensor*> after;
};

// An allocator that is one too has kernels of the CPU do their work on its
// memory: these check arguments, plan and allocate, and call strided_copy() and
// the like, which pass the plan on to the mover of the context's memory. Such
// a kernel must not look at an element but through these functions; which
// inputs it reads itself, as sizes and axes, and so needs in the host's
// memory, says who registers it.
//
// What is asked for is done in the order of the device's launches. An error is
// the launch's.
class ElementMover {
 public:
  virtual ~ElementMover() = default;
  // See strided_copy() of devices/cpu/array/copy.h. What is copied from may be
  // in the host's memory, too. REQUIRES: no count is 0.
  virtual void move(const StridedCopy& copy, const Tensor& from,
                    Tensor& to) = 0;
  // Sets all bytes to zero.
  virtual void clear(Tensor& to) = 0;
  // See multiply() of devices/cpu/dense/products.h. REQUIRES: out has elements.
  virtual Status multiply(const KernelContext& context,
                          const ProductBatch& batch, const Tensor& a,
                          const Tensor& b, Tensor& out) = 0;
  // out = a + b, or a - b, of tensors of one type and shape, of which `out` may
  // be one. What is only read may be in the host's memory. Unimplemented for
  // types that the device does not add.
  virtual Status add(const KernelContext& context, const Tensor& a,
                     const Tensor& b, bool subtracts, Tensor& out) = 0;
  // What is only read may be in the host's memory. Unimplemented for what the
  // device has no rule of.
  virtual Status train(const KernelContext& context,
                       const DenseTraining& training) = 0;
};

// The mover of the memory that the kernel's outputs are in, or null where the
// processor is to do it.
inline ElementMover* mover_of(const KernelContext& context) {
  Allocator& allocator = context.allocator();
  return allocator.host_visible() ? nullptr
                                  : dynamic_cast<ElementMover*>(&allocator);
}

// The same for what is done to a tensor: strings and handles are the host's.
inline ElementMover* mover_for(const KernelContext& context,
                               const Tensor& tensor) {
  return is_plain(tensor.dtype()) ? mover_of(context) : nullptr;
}

// Whether the kernel can write to the tensor's elements, so far as memory goes:
// a mover writes to its own only, and not into a token.
inline bool can_change(const KernelContext& context, const Tensor& tensor) {
  return mover_of(context) == nullptr ||
         (tensor.buffer() != nullptr &&
          context.allocator().shares_memory(*tensor.buffer()->allocator));
}

}  // namespace tagflow::devices
