// Layers whose product multiplies rows by a matrix. For floats, the product is
// divided into blocks, and the element-wise ops run on each block while it is
// in the cache: the whole product is never stored, nor is a ConcatV2 before it.
// Everything else runs through the kernels one by one.
#include "devices/kernel_registry.h"
#include "devices/kernels/built_kernel.h"
#include "devices/kernels/containers/values.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/product/gemm.h"
#include "devices/kernels/product/layer_ops.h"
#include "devices/kernels/product/packed_weights.h"
#include "graph/known_value.h"

namespace tagflow::devices {
namespace {

class RowLayerKernel final : public Kernel {
 public:
  Status build(const KernelInfo& info) {
    TAGFLOW_RETURN_IF_ERROR(ops_.build(info));
    comes_packed_ = info.node().op() == "_PackedMatMul";
    is_transposed_ = ops_.is_set("transpose_b") || ops_.is_set("adj_y");
    can_be_blocks_ = ops_.dtype() == DataType::kFloat &&
                     ops_.can_run_blocks() && !ops_.is_set("transpose_a") &&
                     !ops_.is_set("adj_x");
    if (comes_packed_ || !can_be_blocks_) return {};
    const Tensor* value = graph::known_constant(info.node().inputs()[1]);
    if (value != nullptr && PackedMatrix::can_pack(*value, is_transposed_))
      matrix_ = std::make_unique<PackedMatrix>(*value, is_transposed_);
    return {};
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Weights weights, weights_of(context));
    if (weights.matrix != nullptr) {
      TAGFLOW_ASSIGN(const bool done, compute_blocks(context, *weights.matrix));
      if (done) return {};
    }
    return ops_.compute(context, weights.tensor);
  }

  double cost(const KernelContext& context) const override {
    const Result<Weights> weights = weights_of(context);
    if (!weights.ok()) return 0;
    if (weights->matrix == nullptr) return ops_.cost(context, weights->tensor);
    const MatrixLayout& layout = weights->matrix->layout();
    const int64_t rows = rows_of(context, layout);
    if (rows == 0) return ops_.cost(context, weights->tensor);
    return gemm_cost(ops_.dtype(), rows, layout.outputs, layout.inputs);
  }

 private:
  // The weights of the node.
  struct Weights {
    Tensor tensor;
    PackedMatrix* matrix = nullptr;  // null: the product cannot run in blocks
  };

  Result<Weights> weights_of(const KernelContext& context) const {
    if (!comes_packed_) return Weights{context.input(1), matrix_.get()};
    TAGFLOW_ASSIGN(const auto* value,
                   value_input<PackedWeights>(context, 1, "packed matrix"));
    PackedMatrix* const matrix = value->matrix();
    const bool fits = can_be_blocks_ && matrix != nullptr &&
                      matrix->layout().transposed == is_transposed_;
    return Weights{value->tensor(), fits ? matrix : nullptr};
  }

  // Rows of the product; 0 if the kernels must run one by one.
  int64_t rows_of(const KernelContext& context,
                  const MatrixLayout& layout) const {
    const int rank = ops_.part(context, 0).rank();
    const bool may_be_batch =
        ops_.product().op() != "MatMul" && ops_.num_parts() == 1;
    if (may_be_batch ? rank < 2 : rank != 2) return 0;
    const int64_t first = ops_.part(context, 0).dim(0);
    int64_t channels = 0, rows = 0;
    for (int64_t i = 0; i < ops_.num_parts(); ++i) {
      const Tensor& part = ops_.part(context, i);
      if (part.num_elements() == 0 || part.rank() != rank ||
          part.dim(0) != first)
        return 0;
      channels += part.dim(rank - 1);
      rows = part.num_elements() / part.dim(rank - 1);
    }
    return channels == layout.inputs ? rows : 0;
  }

  // Returns false if nothing was done.
  Result<bool> compute_blocks(KernelContext& context,
                              PackedMatrix& matrix) const {
    const MatrixLayout& layout = matrix.layout();
    RowFactors factors{.rows = rows_of(context, layout), .matrix = matrix};
    if (factors.rows == 0 ||
        ops_.num_parts() > int64_t(RowFactors::kMostInputs) ||
        !ops_.find_bias(context, layout.outputs, factors.bias))
      return false;
    for (int64_t i = 0; i < ops_.num_parts(); ++i) {
      const Tensor& part = ops_.part(context, i);
      const int64_t channels = part.dim(part.rank() - 1);
      factors.inputs.push_back({part.data<float>(), channels, channels});
    }
    Shape shape = ops_.part(context, 0).shape();
    shape.set_dim(shape.rank() - 1, layout.outputs);
    return ops_.compute_rows(context, factors, shape);
  }

  LayerOps ops_;
  bool comes_packed_ = false;  // the weights are from a _PackWeights
  bool is_transposed_ = false;
  bool can_be_blocks_ = false;
  std::unique_ptr<PackedMatrix> matrix_;  // of constant weights
};

}  // namespace

void register_row_layer_kernels(KernelRegistry& registry) {
  for (const char* op : {"_FusedMatMul", "_FusedBatchMatMulV2"})
    for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                                 DataType::kHalf, DataType::kBFloat16})
      add_kernel(registry, op, dtype, make_built<RowLayerKernel>);
  add_kernel(registry, "_PackedMatMul", DataType::kFloat,
             make_built<RowLayerKernel>);
}

}  // namespace tagflow::devices
