#include "devices/kernels/product/products.h"

#include <algorithm>
#include <bit>

#include "devices/element_mover.h"
#include "devices/kernels/product/gemm.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

// Rows, or columns, of a result are computed in blocks of a multiple of kBlock.
// Each shard reads the whole other factor, and reorders it: so a block must
// take at least kShardNanoseconds.
constexpr int64_t kBlock = 64;
constexpr double kShardNanoseconds = 300e3;
// For each byte of the other factor.
constexpr double kReorderNanoseconds = 0.25;

// The type in which gemm() computes a result type.
DataType working_type(DataType dtype) {
  switch (dtype) {
    case DataType::kHalf:
    case DataType::kBFloat16:
      return DataType::kFloat;
    case DataType::kComplex64:
      return DataType::kFloat;
    case DataType::kComplex128:
      return DataType::kDouble;
    default:
      return dtype;
  }
}

// A plane of a tensor: its numbers, or one part of complex ones.
enum class Part : uint8_t { kReal, kImaginary };

// Copies `count` matrices of stored size rows x columns, as W, optionally
// transposed. The imaginary part is negated if the form is conjugated.
template <class From, class W>
void convert_plane(const From* from, int64_t count, int64_t rows,
                   int64_t columns, FactorForm form, Part part, W* to) {
  const auto element = [&](const From& value) -> W {
    if constexpr (requires { value.real(); } && !std::is_arithmetic_v<From> &&
                  !std::is_same_v<From, Half> &&
                  !std::is_same_v<From, BFloat16>) {
      if (part == Part::kReal) return W(value.real());
      return W(form.conjugated ? -value.imag() : value.imag());
    } else {
      return static_cast<W>(value);
    }
  };
  for (int64_t matrix = 0; matrix < count; ++matrix) {
    if (!form.transposed) {
      for (int64_t i = 0; i < rows * columns; ++i) to[i] = element(from[i]);
    } else {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          to[j * rows + i] = element(from[i * columns + j]);
    }
    from += rows * columns;
    to += rows * columns;
  }
}

// The elements of a factor in gemm()'s type. `holder` keeps a converted copy
// alive if one is needed.
template <class W>
struct Prepared {
  const W* borrowed = nullptr;
  int64_t stride = 0;
  bool transposed = false;
  Tensor holder;  // its elements may be inline: they move with it

  const W* data() const { return holder.valid() ? holder.data<W>() : borrowed; }
};

// `rows` and `columns` are those of the product.
template <class W>
Result<Prepared<W>> prepare(const KernelContext& context, const Tensor& tensor,
                            int64_t rows, int64_t columns, FactorForm form,
                            Part part) {
  Prepared<W> prepared;
  const int64_t stored_rows = form.transposed ? columns : rows;
  const int64_t stored_columns = form.transposed ? rows : columns;
  const bool takes_transposed = std::is_floating_point_v<W>;
  if (tensor.dtype() == kDataTypeOf<W> &&
      (takes_transposed || !form.transposed)) {
    prepared.borrowed = tensor.data<W>();
    prepared.stride = stored_columns;
    prepared.transposed = form.transposed;
    return prepared;
  }
  TAGFLOW_ASSIGN(
      prepared.holder,
      Tensor::allocate(kDataTypeOf<W>, tensor.shape(), context.allocator()));
  W* to = prepared.holder.template mutable_data<W>();
  const int64_t size = std::max<int64_t>(1, rows * columns);
  const int64_t count = tensor.num_elements() / size;
  visit_numeric(tensor.dtype(), [&]<class From>(TypeTag<From>) {
    constexpr bool kComplex =
        std::is_same_v<From, Complex64> || std::is_same_v<From, Complex128>;
    constexpr bool kFloats = !std::is_integral_v<From>;
    // Only some of the conversions that a program can request make sense.
    if constexpr (std::is_floating_point_v<W> == kFloats ||
                  (std::is_same_v<W, float> && sizeof(From) == 1 &&
                   !kComplex)) {
      const From* from = tensor.data<From>();
      context.parallel_for(
          count, double(size), [&](int64_t begin, int64_t end) {
            convert_plane(from + begin * size, end - begin, stored_rows,
                          stored_columns, form, part, to + begin * size);
          });
    }
  });
  prepared.stride = columns;
  return prepared;
}

// The rows or columns of a block of a product of so many nanoseconds. The
// number of blocks is a power of two, which most machines share evenly, and
// more than one if there are enough rows.
int64_t block_length(double cost, int64_t length) {
  const auto wanted = uint64_t(std::min(cost / kShardNanoseconds, 1e9));
  const auto blocks = int64_t(std::max<uint64_t>(std::bit_floor(wanted), 2));
  const int64_t block = (length + blocks - 1) / blocks;
  return (block + kBlock - 1) / kBlock * kBlock;
}

// Computes result rows, or columns if there are more, in blocks; the unit of
// sharding is one block of one matrix of the batch.
template <class W>
void run_blocks(const KernelContext& context, const ProductBatch& batch,
                const Prepared<W>& a, const Prepared<W>& b, W* out,
                bool accumulate) {
  const int64_t m = batch.m, n = batch.n, k = batch.k;
  const bool by_rows = m >= n;
  const int64_t length = by_rows ? m : n;
  const int64_t block =
      block_length(gemm_cost(kDataTypeOf<W>, m, n, k), length);
  const int64_t blocks = (length + block - 1) / block;
  const auto product = [&](int64_t i, int64_t first, int64_t last) {
    first *= block;
    last = std::min(last * block, length);
    const auto [a_index, b_index] = batch.factors(i);
    Factor<W> left{a.data() + a_index * m * k, a.stride, a.transposed};
    Factor<W> right{b.data() + b_index * k * n, b.stride, b.transposed};
    W* to = out + i * m * n;
    if (by_rows) {
      left.data += a.transposed ? first : first * a.stride;
      gemm(last - first, n, k, left, right, to + first * n, n, accumulate);
    } else {
      right.data += b.transposed ? first * b.stride : first;
      gemm(m, last - first, k, left, right, to + first, n, accumulate);
    }
  };
  const int64_t total = batch.count() * blocks;
  const double cost =
      gemm_cost(kDataTypeOf<W>, by_rows ? std::min(block, m) : m,
                by_rows ? n : std::min(block, n), k);
  const double reordered = double(k) * double(by_rows ? n : m);
  context.parallel_for(
      total, cost,
      [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t i = begin / blocks;
          const int64_t stop = std::min(end, (i + 1) * blocks);
          product(i, begin - i * blocks, stop - i * blocks);
          begin = stop;
        }
      },
      reordered * double(sizeof(W)) * kReorderNanoseconds);
}

template <class W>
Status multiply_real(KernelContext& context, const ProductBatch& batch,
                     const Tensor& a, const Tensor& b, Tensor& out) {
  TAGFLOW_ASSIGN(
      const Prepared<W> left,
      prepare<W>(context, a, batch.m, batch.k, batch.a_form, Part::kReal));
  TAGFLOW_ASSIGN(
      const Prepared<W> right,
      prepare<W>(context, b, batch.k, batch.n, batch.b_form, Part::kReal));
  if (out.dtype() == kDataTypeOf<W>) {
    run_blocks(context, batch, left, right, out.mutable_data<W>(), false);
    return Status();
  }
  TAGFLOW_ASSIGN(Tensor wide,
                 context.allocate_temp(kDataTypeOf<W>, out.shape()));
  run_blocks(context, batch, left, right, wide.mutable_data<W>(), false);
  const W* from = wide.data<W>();
  const int64_t count = out.num_elements();
  detail::visit_among<Half, BFloat16>(out.dtype(), [&]<class T>(TypeTag<T>) {
    T* to = out.mutable_data<T>();
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(float(from[i]));
  });
  return Status();
}

template <class W>
Status add_real(const KernelContext& context, const ProductBatch& product,
                const Tensor& a, const Tensor& b, Tensor& sum) {
  const auto& [m, n, k, a_form, b_form, dims] = product;
  TAGFLOW_ASSIGN(const Prepared<W> left,
                 prepare<W>(context, a, m, k, a_form, Part::kReal));
  TAGFLOW_ASSIGN(const Prepared<W> right,
                 prepare<W>(context, b, k, n, b_form, Part::kReal));
  run_blocks(context, product, left, right, sum.mutable_data<W>(), true);
  return {};
}

// (a + bi)(c + di) from four real products of planes.
template <class W>
Status multiply_complex(KernelContext& context, const ProductBatch& batch,
                        const Tensor& a, const Tensor& b, Tensor& out) {
  Prepared<W> left[2], right[2];
  for (Part part : {Part::kReal, Part::kImaginary}) {
    TAGFLOW_ASSIGN(left[int(part)], prepare<W>(context, a, batch.m, batch.k,
                                               batch.a_form, part));
    TAGFLOW_ASSIGN(right[int(part)], prepare<W>(context, b, batch.k, batch.n,
                                                batch.b_form, part));
  }
  const DataType dtype = kDataTypeOf<W>;
  TAGFLOW_ASSIGN(Tensor squares, context.allocate_temp(dtype, out.shape()));
  TAGFLOW_ASSIGN(Tensor real, context.allocate_temp(dtype, out.shape()));
  TAGFLOW_ASSIGN(Tensor mixed, context.allocate_temp(dtype, out.shape()));
  W* re = real.mutable_data<W>();
  W* sq = squares.mutable_data<W>();
  W* im = mixed.mutable_data<W>();
  run_blocks(context, batch, left[0], right[0], re, false);
  run_blocks(context, batch, left[1], right[1], sq, false);
  run_blocks(context, batch, left[0], right[1], im, false);
  run_blocks(context, batch, left[1], right[0], im, true);
  auto* to = out.mutable_data<std::complex<W>>();
  for (int64_t i = 0; i < out.num_elements(); ++i)
    to[i] = {re[i] - sq[i], im[i]};
  return Status();
}

}  // namespace

Status multiply(KernelContext& context, const ProductBatch& batch,
                const Tensor& a, const Tensor& b, Tensor& out) {
  if (out.num_elements() == 0) return Status();
  if (ElementMover* mover = mover_of(context))
    return mover->multiply(context, batch, a, b, out);
  Status status;
  const bool known =
      detail::visit_among<float, double, int16_t, int32_t, int64_t, uint8_t,
                          uint16_t, uint32_t, uint64_t, int8_t>(
          working_type(out.dtype()), [&]<class W>(TypeTag<W>) {
            if constexpr (std::is_floating_point_v<W>) {
              if (is_complex(out.dtype())) {
                status = multiply_complex<W>(context, batch, a, b, out);
                return;
              }
            }
            status = multiply_real<W>(context, batch, a, b, out);
          });
  if (!known)
    return error(Code::kUnimplemented, "[{}] no product of type {}",
                 context.node().op(), dtype_name(out.dtype()));
  return status;
}

Status add_product(const KernelContext& context, const ProductBatch& product,
                   const Tensor& a, const Tensor& b, Tensor& sum) {
  if (sum.num_elements() == 0) return {};
  Status status;
  detail::visit_among<float, double>(sum.dtype(), [&]<class W>(TypeTag<W>) {
    status = add_real<W>(context, product, a, b, sum);
  });
  return status;
}

double multiply_cost(DataType dtype, int64_t count, int64_t m, int64_t n,
                     int64_t k) {
  const double products = double(count) * gemm_cost(dtype, m, n, k);
  if (working_type(dtype) == dtype) return products;
  return products + double(count) * double(m * k + k * n + m * n);
}

}  // namespace tagflow::devices
