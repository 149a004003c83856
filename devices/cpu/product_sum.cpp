#include "devices/cpu/product_sum.h"

#include <algorithm>

#include "devices/cpu/dense_products.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

// The tensor as one that nobody else holds.
Status make_own(const KernelContext& context, Tensor& tensor) {
  if (tensor.unique()) return {};
  TAGFLOW_ASSIGN(Tensor copy, Tensor::allocate(tensor.dtype(), tensor.shape(),
                                               context.allocator()));
  std::memcpy(copy.mutable_raw(), tensor.raw(), tensor.bytes());
  tensor = std::move(copy);
  return {};
}

Result<Tensor> room_for_rows(const KernelContext& context, DataType dtype,
                             int64_t rows, int64_t columns) {
  const int64_t dims[] = {rows, columns};
  TAGFLOW_ASSIGN(const Shape shape, Shape::make(dims));
  return Tensor::allocate(dtype, shape, context.allocator());
}

}  // namespace

std::string ProductSum::describe() const {
  return fmt::format("ProductSum of {}", sum_.describe());
}

// Enough rows that to go through the sum does not count; of no more elements
// than the sum has, or than are in a core's cache.
int64_t ProductSum::most_rows() const {
  constexpr int64_t kMostRows = 512, kElements = int64_t(1) << 19;
  const int64_t columns = sum_.dim(0) + sum_.dim(1);
  const int64_t most = std::max(sum_.num_elements(), kElements);
  return std::min(kMostRows, most / std::max<int64_t>(columns, 1));
}

bool ProductSum::is_kept(const MatrixProduct& product) const {
  return product.transpose_a && !product.transpose_b &&
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
  if (is_kept(product)) return keep(context, product);
  return make(context, product, product.k());
}

double ProductSum::cost_of_add(const MatrixProduct& product) const {
  if (product.a.rank() != 2 || product.b.rank() != 2 || sum_.rank() != 2)
    return 0;
  if (!is_kept(product))
    return multiply_cost(dtype(), 1, product.m(), product.n(), product.k());
  const double copying =
      0.3 * double(product.a.num_elements() + product.b.num_elements());
  const bool is_full = rows_ + product.k() > most_rows();
  return copying + (is_full ? cost_of_result() : 0);
}

Status ProductSum::keep(const KernelContext& context,
                        const MatrixProduct& product) {
  const int64_t rows = product.k();
  if (rows_ + rows > most_rows()) TAGFLOW_RETURN_IF_ERROR(make(context));
  for (auto [kept, factor] : {std::pair{&a_, &product.a}, {&b_, &product.b}}) {
    if (!kept->valid()) {
      TAGFLOW_ASSIGN(
          *kept, room_for_rows(context, dtype(), most_rows(), factor->dim(1)));
    }
    TAGFLOW_RETURN_IF_ERROR(make_own(context, *kept));
    const size_t row_bytes = size_t(factor->dim(1)) * dtype_size(dtype());
    auto* const to = static_cast<std::byte*>(kept->mutable_raw()) +
                     size_t(rows_) * row_bytes;
    const auto* const from = static_cast<const std::byte*>(factor->raw());
    constexpr double kBytesPerNs = 8;
    context.parallel_for(rows, double(row_bytes) / kBytesPerNs,
                         [&](int64_t begin, int64_t end) {
                           const size_t offset = size_t(begin) * row_bytes;
                           std::memcpy(to + offset, from + offset,
                                       size_t(end - begin) * row_bytes);
                         });
  }
  rows_ += rows;
  return {};
}

Status ProductSum::make(const KernelContext& context) {
  if (rows_ == 0) return {};
  TAGFLOW_RETURN_IF_ERROR(make(context, {a_, b_, true, false}, rows_));
  rows_ = 0;
  return {};
}

Status ProductSum::make(const KernelContext& context,
                        const MatrixProduct& product, int64_t k) {
  TAGFLOW_RETURN_IF_ERROR(make_own(context, sum_));
  ProductBatch batch;
  batch.m = product.m();
  batch.n = product.n();
  batch.k = k;
  batch.a_form.transposed = product.transpose_a;
  batch.b_form.transposed = product.transpose_b;
  return add_product(context, batch, product.a, product.b, sum_);
}

Result<Tensor> ProductSum::result(const KernelContext& context) {
  TAGFLOW_RETURN_IF_ERROR(make(context));
  return sum_;
}

double ProductSum::cost_of_result() const {
  if (rows_ == 0) return 0;
  return multiply_cost(dtype(), 1, sum_.dim(0), sum_.dim(1), rows_);
}

}  // namespace tagflow::devices
