// Zeros and sums of variants: gradients of lists are lists.
#pragma once

#include <vector>

#include "devices/kernel.h"
#include "graph/handle.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// How deep values may hold one another where a sum or zeros are made of them.
inline constexpr int kMaxVariantDepth = 1000;

// A variant value that has zeros and sums. An empty variant is a zero of each
// of them. `depth` counts how deep the value lies in others.
class ArithmeticValue : public VariantValue {
 public:
  // The same structure with zeros in it.
  virtual Result<Variant> zeros_like(const KernelContext& context,
                                     int depth) const = 0;
  // InvalidArgument where `other` is not of the same structure.
  virtual Result<Variant> add(const KernelContext& context,
                              const VariantValue& other, int depth) const = 0;

 protected:
  explicit ArithmeticValue(Kind kind = Kind::kArithmetic)
      : VariantValue(kind) {}
};

class VariantSum;

// Whether a tensor is a single empty variant: a zero of any shape.
bool is_zero_variant(const Tensor& tensor);

// What holds gradients: a sum of them is made in place, and values may hold one
// another as deep as a loop has run.
class GradientValue : public ArithmeticValue {
 public:
  // How many elements copy() takes.
  virtual int64_t copy_size() const = 0;
  // One that nobody else holds.
  virtual Ref<GradientValue> copy() const = 0;
  // Adds `term`, which is of the same class. InvalidArgument where an element
  // is of another type or shape. REQUIRES: nobody else holds this value.
  virtual Status accumulate(VariantSum& sum, const GradientValue& term) = 0;

  // An empty variant.
  Result<Variant> zeros_like(const KernelContext& context,
                             int depth) const final;
  Result<Variant> add(const KernelContext& context, const VariantValue& other,
                      int depth) const final;

 protected:
  GradientValue() : ArithmeticValue(Kind::kGradient) {}
};

// The value as one of these; null where it is, or there is, none.
inline ArithmeticValue* as_arithmetic(VariantValue* value) {
  return value != nullptr && value->kind() != VariantValue::Kind::kOther
             ? static_cast<ArithmeticValue*>(value)
             : nullptr;
}
inline GradientValue* as_gradient(VariantValue* value) {
  return value != nullptr && value->kind() == VariantValue::Kind::kGradient
             ? static_cast<GradientValue*>(value)
             : nullptr;
}

// Sums of tensors and variants. Those of variants are put off until finish(),
// so that gradients within gradients are added without recursion.
class VariantSum {
 public:
  // `depth` is that of what is added.
  VariantSum(const KernelContext& context, int depth)
      : context_(context), depth_(depth) {}

  const KernelContext& context() const { return context_; }
  // Adds `term` to `sum`, in place where nobody else holds that. An invalid
  // tensor stands for zeros. InvalidArgument where types or shapes differ. The
  // elements of `sum` must stay where they are until finish().
  Status add(Tensor& sum, const Tensor& term);
  void add(Variant& sum, const Variant& term) {
    put_off_.push_back({&sum, term});
  }
  Status finish();

 private:
  struct Addition {
    Variant* sum;
    Variant term;
  };

  Status carry_out(Variant& sum, const Variant& term);

  const KernelContext& context_;
  const int depth_;
  std::vector<Addition> put_off_;
};

// Zeros of a tensor's type and shape; of an invalid one, another such.
Result<Tensor> zeros_like_tensor(const KernelContext& context,
                                 const Tensor& tensor, int depth);
// The sum. An invalid tensor stands for zeros. InvalidArgument where types or
// shapes differ.
Result<Tensor> add_nested(const KernelContext& context, const Tensor& a,
                          const Tensor& b, int depth);

}  // namespace tagflow::devices
