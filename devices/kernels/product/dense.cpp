// MatMul and BatchMatMul.
#include <algorithm>

#include "devices/kernel_registry.h"
#include "devices/kernels/product/products.h"

namespace tagflow::devices {
namespace {

// The sizes of one product of the last two dimensions of two tensors.
// InvalidArgument if the inner ones differ.
// REQUIRES: both have at least two dimensions.
Result<ProductBatch> product_of(const KernelContext& context, FactorForm a_form,
                                FactorForm b_form) {
  const Tensor& a = context.input(0);
  const Tensor& b = context.input(1);
  const auto size = [](const Tensor& t, bool transposed, int i) {
    return t.dim(t.rank() - 2 + (transposed ? 1 - i : i));
  };
  ProductBatch batch;
  batch.a_form = a_form;
  batch.b_form = b_form;
  batch.m = size(a, a_form.transposed, 0);
  batch.k = size(a, a_form.transposed, 1);
  batch.n = size(b, b_form.transposed, 1);
  const int64_t b_rows = size(b, b_form.transposed, 0);
  if (batch.k != b_rows)
    return context.fail("the inner dimensions of {}{} and {}{} differ",
                        a.describe(), a_form.transposed ? " (transposed)" : "",
                        b.describe(), b_form.transposed ? " (transposed)" : "");
  return batch;
}

// Nanoseconds of the products, estimated from the inputs; wrong shapes are
// cheap.
double products_cost(const KernelContext& context, DataType dtype,
                     FactorForm a_form, FactorForm b_form) {
  const Tensor& a = context.input(0);
  const Tensor& b = context.input(1);
  if (a.rank() < 2 || b.rank() < 2 || a.num_elements() == 0 ||
      b.num_elements() == 0)
    return 0;
  const int64_t k = a.dim(a.rank() - (a_form.transposed ? 2 : 1));
  const int64_t m = a.dim(a.rank() - (a_form.transposed ? 1 : 2));
  const int64_t n = b.dim(b.rank() - (b_form.transposed ? 2 : 1));
  const int64_t count =
      std::max(a.num_elements() / (m * k), b.num_elements() / (k * n));
  return multiply_cost(dtype, count, m, n, k);
}

class MatMulKernel : public Kernel {
 public:
  explicit MatMulKernel(FactorForm a, FactorForm b) : a_form_(a), b_form_(b) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    FactorForm a, b;
    TAGFLOW_ASSIGN(a.transposed, info.attr<bool>("transpose_a"));
    TAGFLOW_ASSIGN(b.transposed, info.attr<bool>("transpose_b"));
    return std::unique_ptr<Kernel>(std::make_unique<MatMulKernel>(a, b));
  }

  Status compute(KernelContext& context) const override {
    for (int i = 0; i < 2; ++i)
      if (context.input(i).rank() != 2)
        return context.fail("input {} is {}, not a matrix", i,
                            context.input(i).describe());
    TAGFLOW_ASSIGN(ProductBatch batch, product_of(context, a_form_, b_form_));
    TAGFLOW_ASSIGN(
        const Shape shape,
        Shape::make(std::initializer_list<int64_t>{batch.m, batch.n}));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    return multiply(context, batch, context.input(0), context.input(1), *out);
  }

  double cost(const KernelContext& context) const override {
    return products_cost(context, context.input(0).dtype(), a_form_, b_form_);
  }

 private:
  FactorForm a_form_, b_form_;
};

class BatchMatMulKernel : public Kernel {
 public:
  BatchMatMulKernel(FactorForm a, FactorForm b, bool broadcasts)
      : a_form_(a), b_form_(b), broadcasts_(broadcasts) {}
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    FactorForm a, b;
    TAGFLOW_ASSIGN(a.transposed, info.attr<bool>("adj_x"));
    TAGFLOW_ASSIGN(b.transposed, info.attr<bool>("adj_y"));
    a.conjugated = a.transposed;
    b.conjugated = b.transposed;
    return std::unique_ptr<Kernel>(std::make_unique<BatchMatMulKernel>(
        a, b, info.node().op() != "BatchMatMul"));
  }

  Status compute(KernelContext& context) const override {
    for (int i = 0; i < 2; ++i)
      if (context.input(i).rank() < 2)
        return context.fail("input {} is {}, of fewer than two dimensions", i,
                            context.input(i).describe());
    TAGFLOW_ASSIGN(ProductBatch batch, product_of(context, a_form_, b_form_));
    TAGFLOW_ASSIGN(const Shape shape, match_batches(context, batch));
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    return multiply(context, batch, context.input(0), context.input(1), *out);
  }

  double cost(const KernelContext& context) const override {
    return products_cost(context, context.node().output_dtypes()[0], a_form_,
                         b_form_);
  }

 private:
  // Pairs the matrices of both inputs by broadcasting the dimensions before the
  // last two; returns the shape of the result.
  Result<Shape> match_batches(const KernelContext& context,
                              ProductBatch& batch) const;

  FactorForm a_form_, b_form_;
  bool broadcasts_;
};

Result<Shape> BatchMatMulKernel::match_batches(const KernelContext& context,
                                               ProductBatch& batch) const {
  const Tensor& a = context.input(0);
  const Tensor& b = context.input(1);
  const int rank = std::max(a.rank(), b.rank()) - 2;
  const auto dim = [rank](const Tensor& t, int i) {
    const int at = i - (rank - (t.rank() - 2));
    return at < 0 ? 1 : t.dim(at);
  };
  if (!broadcasts_ && a.rank() != b.rank())
    return context.fail("the ranks of {} and {} differ", a.describe(),
                        b.describe());
  Shape::Dims dims;
  for (int i = 0; i < rank; ++i) {
    const int64_t in_a = dim(a, i), in_b = dim(b, i);
    if (in_a != in_b && (!broadcasts_ || (in_a != 1 && in_b != 1)))
      return context.fail("the batch dimensions of {} and {} do not fit",
                          a.describe(), b.describe());
    dims.push_back(in_a == 1 ? in_b : in_a);
  }
  Shape::Dims out = dims;
  out.push_back(batch.m);
  out.push_back(batch.n);
  TAGFLOW_ASSIGN(Shape shape, Shape::make({out.data(), out.size()}));
  // Without elements there is no product, but dimensions may be huge.
  if (shape.num_elements() == 0) return shape;

  int64_t a_step = 1, b_step = 1;
  for (int i = rank; i-- > 0;) {
    const int64_t in_a = dim(a, i), in_b = dim(b, i);
    batch.dims.insert(
        batch.dims.begin(),
        {dims[size_t(i)], in_a == 1 ? 0 : a_step, in_b == 1 ? 0 : b_step});
    a_step *= in_a;
    b_step *= in_b;
  }
  return shape;
}

// A function, since kernels may be registered before the variables of this
// source are initialised.
std::vector<DataType> product_types() {
  return {DataType::kFloat,   DataType::kDouble,    DataType::kHalf,
          DataType::kInt16,   DataType::kInt32,     DataType::kInt64,
          DataType::kUInt8,   DataType::kUInt16,    DataType::kUInt32,
          DataType::kUInt64,  DataType::kComplex64, DataType::kComplex128,
          DataType::kBFloat16};
}

}  // namespace

void register_dense_kernels(KernelRegistry& registry) {
  registry.add<MatMulKernel>("MatMul", {{"T", product_types()}});
  for (const char* op : {"BatchMatMul", "BatchMatMulV2"})
    registry.add<BatchMatMulKernel>(op, {{"T", product_types()}});
  const auto add_mixed = [&](std::vector<DataType> a, std::vector<DataType> b,
                             DataType out) {
    registry.add<BatchMatMulKernel>("BatchMatMulV3",
                                    {{"Ta", a}, {"Tb", b}, {"Tout", {out}}});
  };
  for (DataType dtype : product_types()) add_mixed({dtype}, {dtype}, dtype);
  const std::vector<DataType> bytes = {DataType::kInt8, DataType::kUInt8};
  const DataType brain = DataType::kBFloat16;
  add_mixed(bytes, bytes, DataType::kInt32);
  add_mixed({brain}, bytes, brain);
  add_mixed(bytes, {brain}, brain);
}

}  // namespace tagflow::devices
