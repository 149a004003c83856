#include "devices/kernels/product/product_sum.h"

#include <algorithm>

#include "devices/kernels/product/outer_products.h"
#include "devices/kernels/product/products.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

// Replaces the tensor by a copy if somebody else holds it.
Status make_own(const KernelContext& context, Tensor& tensor) {
  if (tensor.unique()) return {};
  TAGFLOW_ASSIGN(Tensor copy, Tensor::allocate(tensor.dtype(), tensor.shape(),
                                               context.allocator()));
  std::memcpy(copy.mutable_raw(), tensor.raw(), tensor.bytes());
  tensor = std::move(copy);
  return {};
}

}  // namespace

std::string ProductSum::describe() const {
  return fmt::format("ProductSum of {}", sum_.describe());
}

// Enough rows that the pass over the sum does not matter; at most twice as many
// elements as the sum, or as a core's cache holds.
int64_t ProductSum::most_rows() const {
  constexpr int64_t kMostRows = 512, kElements = int64_t(1) << 20;
  const int64_t columns = sum_.dim(0) + sum_.dim(1);
  const int64_t most = std::max(2 * sum_.num_elements(), kElements);
  return std::min(kMostRows, most / std::max<int64_t>(columns, 1));
}

bool ProductSum::is_kept(const MatrixProduct& product) const {
  return dtype() == DataType::kFloat && product.transpose_a &&
         !product.transpose_b && product.k() > 0 &&
         product.k() <= most_rows() / 2;
}

Status ProductSum::add(const KernelContext& context,
                       const MatrixProduct& product) {
  const auto& [a, b, transpose_a, transpose_b] = product;
  for (const Tensor* factor : {&a, &b})
    if (factor->rank() != 2)
      return context.fail("a factor is {}, not a matrix", factor->describe());
  if (product.k() != b.dim(transpose_b ? 1 : 0))
    return context.fail("the inner dimensions of {}{} and {}{} differ",
                        a.describe(), transpose_a ? " (transposed)" : "",
                        b.describe(), transpose_b ? " (transposed)" : "");
  if (sum_.rank() != 2 || sum_.dim(0) != product.m() ||
      sum_.dim(1) != product.n())
    return context.fail("a product [{},{}] cannot be added to {}", product.m(),
                        product.n(), sum_.describe());
  if (sum_.num_elements() == 0) return {};
  if (is_kept(product)) {
    if (rows_ + product.k() > most_rows())
      TAGFLOW_RETURN_IF_ERROR(make(context));
    kept_.push_back({a, b});
    rows_ += product.k();
    return {};
  }
  TAGFLOW_RETURN_IF_ERROR(make_own(context, sum_));
  ProductBatch batch;
  batch.m = product.m();
  batch.n = product.n();
  batch.k = product.k();
  batch.a_form.transposed = transpose_a;
  batch.b_form.transposed = transpose_b;
  return add_product(context, batch, a, b, sum_);
}

double ProductSum::cost_of_add(const MatrixProduct& product) const {
  if (product.a.rank() != 2 || product.b.rank() != 2 || sum_.rank() != 2)
    return 0;
  if (!is_kept(product))
    return multiply_cost(dtype(), 1, product.m(), product.n(), product.k());
  return rows_ + product.k() > most_rows() ? cost_of_result() : 0;
}

Status ProductSum::make(const KernelContext& context) {
  if (kept_.empty()) return {};
  TAGFLOW_RETURN_IF_ERROR(make_own(context, sum_));
  std::vector<RowPairs> pairs;
  for (const auto& [a, b] : kept_)
    pairs.push_back({a.data<float>(), b.data<float>(), a.dim(0)});
  TAGFLOW_RETURN_IF_ERROR(add_outer_products(
      context, pairs, sum_.dim(0), sum_.dim(1), sum_.mutable_data<float>()));
  kept_.clear();
  rows_ = 0;
  return {};
}

Result<Tensor> ProductSum::result(const KernelContext& context) {
  TAGFLOW_RETURN_IF_ERROR(make(context));
  return sum_;
}

double ProductSum::cost_of_result() const {
  if (kept_.empty()) return 0;
  return multiply_cost(dtype(), 1, sum_.dim(0), sum_.dim(1), rows_);
}

}  // namespace tagflow::devices
