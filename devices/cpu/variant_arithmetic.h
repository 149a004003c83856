// Zeros and sums of variants: gradients of lists are lists.
#pragma once

#include "devices/kernel.h"
#include "graph/handle.h"

namespace tagflow::devices {

// How deep values may hold one another where a sum or zeros are made of them.
inline constexpr int kMaxVariantDepth = 1000;

// A variant value that has zeros and sums. `depth` counts how deep the value
// lies in others.
class ArithmeticValue : public VariantValue {
 public:
  // The same structure with zeros in it.
  virtual Result<Variant> zeros_like(const KernelContext& context,
                                     int depth) const = 0;
  // InvalidArgument where `other` is not of the same structure.
  virtual Result<Variant> add(const KernelContext& context,
                              const VariantValue& other, int depth) const = 0;
};

// Zeros of a tensor's type and shape; of an invalid one, another such.
Result<Tensor> zeros_like_tensor(const KernelContext& context,
                                 const Tensor& tensor, int depth);
// The sum. An invalid tensor stands for zeros. InvalidArgument where types or
// shapes differ.
Result<Tensor> add_nested(const KernelContext& context, const Tensor& a,
                          const Tensor& b, int depth);

}  // namespace tagflow::devices
