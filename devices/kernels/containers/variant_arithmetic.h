// Zeros and sums of variants: gradients of lists are lists.
#pragma once

#include <vector>

#include "devices/kernel.h"
#include "graph/handle.h"
#include "graph/tensor.h"

namespace tagflow::devices {

// The maximum nesting of values in a sum or in zeros.
inline constexpr int kMaxVariantDepth = 1000;

// A variant value that has zeros and sums. An empty variant is a zero for all
// of them. `depth` is the nesting level of the value.
class ArithmeticValue : public VariantValue {
 public:
  // The same structure, filled with zeros.
  virtual Result<Variant> zeros_like(const KernelContext& context,
                                     int depth) const = 0;
  // InvalidArgument if `other` is not of the same structure.
  virtual Result<Variant> add(const KernelContext& context,
                              const VariantValue& other, int depth) const = 0;

 protected:
  explicit ArithmeticValue(Kind kind = Kind::kArithmetic)
      : VariantValue(kind) {}
};

class VariantSum;

// Whether a tensor is a single empty variant: a zero of any shape.
bool is_zero_variant(const Tensor& tensor);

// A value that holds gradients: sums are made in place, and values may be
// nested as deep as a loop has run.
class GradientValue : public ArithmeticValue {
 public:
  // The number of elements that copy() copies.
  virtual int64_t copy_size() const = 0;
  // A copy that nobody else holds.
  virtual Ref<GradientValue> copy() const = 0;
  // Adds `term`, which is of the same class. InvalidArgument if an element
  // is of another type or shape. REQUIRES: nobody else holds this value.
  virtual Status accumulate(VariantSum& sum, const GradientValue& term) = 0;

  // Returns an empty variant.
  Result<Variant> zeros_like(const KernelContext& context,
                             int depth) const final;
  Result<Variant> add(const KernelContext& context, const VariantValue& other,
                      int depth) const final;

 protected:
  GradientValue() : ArithmeticValue(Kind::kGradient) {}
};

// The value as an ArithmeticValue; null if it is null or of another class.
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

// Sums of tensors and variants. Sums of variants are deferred to finish(), so
// that nested gradients are added without recursion.
class VariantSum {
 public:
  // `depth` is the nesting level of the terms.
  VariantSum(const KernelContext& context, int depth)
      : context_(context), depth_(depth) {}

  const KernelContext& context() const { return context_; }
  // Adds `term` to `sum`, in place if nobody else holds `sum`. An invalid
  // tensor counts as zeros. InvalidArgument if types or shapes differ. The
  // elements of `sum` must keep their addresses until finish().
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

// Zeros of a tensor's type and shape; an invalid tensor for an invalid one.
Result<Tensor> zeros_like_tensor(const KernelContext& context,
                                 const Tensor& tensor, int depth);
// The sum. An invalid tensor counts as zeros. InvalidArgument if types or
// shapes differ.
Result<Tensor> add_nested(const KernelContext& context, const Tensor& a,
                          const Tensor& b, int depth);

}  // namespace tagflow::devices
