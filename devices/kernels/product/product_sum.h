// ProductSum: a sum of matrix products, some of which are still pending.
#pragma once

#include "devices/kernel.h"
#include "graph/handle.h"

namespace tagflow::devices {

// The product of two matrices, each optionally transposed first.
struct MatrixProduct {
  const Tensor& a;
  const Tensor& b;
  bool transpose_a = false, transpose_b = false;

  // Sizes of the result, and of the inner dimension. REQUIRES: rank 2.
  int64_t m() const { return a.dim(transpose_a ? 1 : 0); }
  int64_t n() const { return b.dim(transpose_b ? 0 : 1); }
  int64_t k() const { return a.dim(transpose_a ? 0 : 1); }
};

// A matrix, and products that are added to it. Adding a product of a few
// columns by as many rows takes about as long as a pass over the sum. So float
// factors of such products are kept, and when there are enough of them, all
// products are added in one pass. The grouping, and with it the rounding,
// depends on shapes only.
//
// Thread-compatible, as every shared value: non-const methods are only called
// with the last reference. Copies share all elements.
class ProductSum final : public VariantValue {
 public:
  // REQUIRES: the value is of float or double.
  explicit ProductSum(Tensor value) : sum_(std::move(value)) {}
  ProductSum(const ProductSum& other)
      : VariantValue(),
        sum_(other.sum_),
        kept_(other.kept_),
        rows_(other.rows_) {}

  DataType dtype() const { return sum_.dtype(); }
  // "ProductSum of float[3,4]".
  std::string describe() const override;

  // Adds a product. InvalidArgument if its factors are not matrices that can
  // be multiplied, or the result is not of the sum's shape; ResourceExhausted.
  // REQUIRES: the factors are of dtype().
  Status add(const KernelContext& context, const MatrixProduct& product);
  // Estimated nanoseconds of add().
  double cost_of_add(const MatrixProduct& product) const;
  // The sum, with all pending products. ResourceExhausted. After an error of
  // this or of add() the value is not used again.
  Result<Tensor> result(const KernelContext& context);
  double cost_of_result() const;

 private:
  int64_t most_rows() const;
  // Whether the factors can be kept, and that pays.
  bool is_kept(const MatrixProduct& product) const;
  // Adds the pending products.
  Status make(const KernelContext& context);

  Tensor sum_;
  // A pending product, of a transposed `a` and b.
  struct Factors {
    Tensor a, b;
  };
  std::vector<Factors> kept_;
  int64_t rows_ = 0;  // of all pending factors
};

}  // namespace tagflow::devices
