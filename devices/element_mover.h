// ElementMover: what array kernels and products do to elements that only a
// device can reach.
#pragma once

#include "devices/cpu/array_copy.h"
#include "devices/cpu/dense_products.h"
#include "devices/kernel.h"

namespace tagflow::devices {

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
  // See strided_copy() of devices/cpu/array_copy.h. What is copied from may
  // be a single element in the host's memory too, to fill with.
  // REQUIRES: no count is 0.
  virtual void move(const StridedCopy& copy, const Tensor& from,
                    Tensor& to) = 0;
  // Sets all bytes to zero.
  virtual void clear(Tensor& to) = 0;
  // See multiply() of devices/cpu/dense_products.h. REQUIRES: out has elements.
  virtual Status multiply(const KernelContext& context,
                          const ProductBatch& batch, const Tensor& a,
                          const Tensor& b, Tensor& out) = 0;
};

// The mover of the memory that the kernel's outputs are in, or null where the
// processor is to do it.
inline ElementMover* mover_of(const KernelContext& context) {
  Allocator& allocator = context.allocator();
  return allocator.host_visible() ? nullptr
                                  : dynamic_cast<ElementMover*>(&allocator);
}

}  // namespace tagflow::devices
