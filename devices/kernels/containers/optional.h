// Optional: the value of a variant that may be missing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "devices/kernels/containers/values.h"
#include "devices/kernels/containers/variant_arithmetic.h"

namespace tagflow::devices {

// A tuple of values, or nothing.
class Optional final : public ArithmeticValue {
 public:
  Optional() = default;
  explicit Optional(std::vector<Tensor> values)
      : has_value_(true), values_(std::move(values)) {}
  ~Optional() override { release_nested(std::move(values_)); }

  size_t own_bytes() const override {
    return sizeof(*this) + values_.capacity() * sizeof(Tensor);
  }
  bool has_value() const { return has_value_; }
  const std::vector<Tensor>& values() const { return values_; }

  std::string describe() const override {
    return has_value_ ? fmt::format("Optional of {} values", values_.size())
                      : "Optional of nothing";
  }

  Result<Variant> zeros_like(const KernelContext& context,
                             int depth) const override {
    if (!has_value_) return Variant(make_ref_counted<Optional>());
    std::vector<Tensor> zeros;
    for (const Tensor& value : values_) {
      TAGFLOW_ASSIGN(Tensor zero, zeros_like_tensor(context, value, depth + 1));
      zeros.push_back(std::move(zero));
    }
    return Variant(make_ref_counted<Optional>(std::move(zeros)));
  }

  Result<Variant> add(const KernelContext& context, const VariantValue& other,
                      int depth) const override {
    const auto* optional = dynamic_cast<const Optional*>(&other);
    if (optional == nullptr || optional->has_value_ != has_value_ ||
        optional->values_.size() != values_.size())
      return context.fail("cannot add {} and {}", describe(), other.describe());
    if (!has_value_) return Variant(make_ref_counted<Optional>());
    std::vector<Tensor> sums;
    for (size_t i = 0; i < values_.size(); ++i) {
      TAGFLOW_ASSIGN(Tensor sum, add_nested(context, values_[i],
                                            optional->values_[i], depth + 1));
      sums.push_back(std::move(sum));
    }
    return Variant(make_ref_counted<Optional>(std::move(sums)));
  }

 private:
  bool has_value_ = false;
  std::vector<Tensor> values_;
};

}  // namespace tagflow::devices
