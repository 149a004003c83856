// Layers whose product is a convolution. If it is of floats in the usual order
// with a constant filter, the library computes it in parts, and the
// element-wise ops run on each part while it is in the cache. A window of one
// position makes it a product of rows. Everything else runs through the kernels
// one by one.
#include "devices/kernel_registry.h"
#include "devices/kernels/built_kernel.h"
#include "devices/kernels/convolution/packed_convolution.h"
#include "devices/kernels/elementwise/registration.h"
#include "devices/kernels/product/layer_ops.h"
#include "graph/known_value.h"

namespace tagflow::devices {
namespace {

class WindowLayerKernel final : public Kernel {
 public:
  Status build(const KernelInfo& info) {
    TAGFLOW_RETURN_IF_ERROR(ops_.build(info));
    const Tensor* value = graph::known_constant(info.node().inputs()[1]);
    if (ops_.dtype() != DataType::kFloat || ops_.num_parts() > 1 ||
        !ops_.can_run_blocks() || value == nullptr ||
        value->dtype() != DataType::kFloat || value->num_elements() == 0 ||
        !find_layout(value->shape()))
      return {};
    if (layout_.height * layout_.width * layout_.groups == 1) {
      TAGFLOW_ASSIGN(Tensor matrix,
                     value->reshaped({layout_.inputs, layout_.outputs}));
      if (PackedMatrix::can_pack(matrix, false))
        matrix_ = std::make_unique<PackedMatrix>(std::move(matrix), false);
    }
    if (ops_.is_in_place()) library_ = PackedConvolution::make(layout_, *value);
    return {};
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const bool done, compute_packed(context));
    if (done) return {};
    return ops_.compute(context, context.input(1));
  }

  double cost(const KernelContext& context) const override {
    return ops_.cost(context, context.input(1));
  }

 private:
  // False if the library does not support it.
  bool find_layout(const Shape& weights) {
    if (weights.rank() != 4) return false;
    Result<graph::WindowAttrs> window = graph::window_attrs(ops_.product(), 4);
    if (!window.ok() || window->channels_first) return false;
    window_ = std::move(window).value();
    layout_.height = weights.dim(0);
    layout_.width = weights.dim(1);
    layout_.inputs = weights.dim(2);
    layout_.outputs = weights.dim(3);
    if (ops_.product().op() != "Conv2D") {
      layout_.groups = layout_.inputs;
      layout_.outputs *= layout_.inputs;
      layout_.inputs = 1;
    }
    return true;
  }

  // The geometry of an input; false if the kernels must run one by one.
  bool find_geometry(const KernelContext& context, Geometry& geometry,
                     Shape& output) const {
    const Tensor& x = context.input(0);
    if (x.num_elements() == 0 || x.dtype() != DataType::kFloat ||
        x.rank() != 4 || x.dim(3) != layout_.inputs * layout_.groups)
      return false;
    Result<Geometry> found = make_geometry(context, window_, x.shape(),
                                           {1, layout_.height, layout_.width});
    if (!found.ok()) return false;
    geometry = *found;
    Result<Shape> shape =
        make_shape(window_, geometry.batch, geometry.out, layout_.outputs);
    if (!shape.ok() || shape->num_elements() == 0) return false;
    output = *shape;
    return true;
  }

  // Whether it is a window of one position.
  static bool is_of_rows(const Geometry& g) {
    return g.in == g.out && g.stride == Spatial{1, 1, 1} &&
           g.pad == Spatial{0, 0, 0};
  }

  // Returns false if nothing was done.
  Result<bool> compute_packed(KernelContext& context) const {
    Geometry geometry;
    Shape shape;
    const float* bias = nullptr;
    if ((library_ == nullptr && matrix_ == nullptr) ||
        !find_geometry(context, geometry, shape) ||
        !ops_.find_bias(context, layout_.outputs, bias))
      return false;
    const auto* in = context.input(0).data<float>();
    if (matrix_ != nullptr && is_of_rows(geometry))
      return ops_.compute_rows(
          context,
          {.inputs = {{in, layout_.inputs, layout_.inputs}},
           .rows = geometry.batch * geometry.out_positions(),
           .matrix = *matrix_,
           .bias = bias},
          shape);
    if (library_ == nullptr) return false;
    const PackedConvolution::Factors factors{in, bias};
    if (!ops_.has_tail()) {
      TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
      return library_->compute(context, geometry, factors,
                               out->mutable_data<float>(),
                               [](int64_t, int64_t) {});
    }
    LayerTail tail;
    TAGFLOW_ASSIGN(const bool fits, ops_.begin_tail(context, shape, tail));
    if (!fits) return false;
    // The product is computed in the memory of the output.
    auto* elements = context.mutable_outputs()[0].mutable_data<float>();
    return library_->compute(context, geometry, factors, elements,
                             [&](int64_t begin, int64_t end) {
                               ops_.run_tail(tail, {.first = elements + begin,
                                                    .begin = begin,
                                                    .columns = end - begin});
                             });
  }

  LayerOps ops_;
  // Null if the library does not support it.
  std::unique_ptr<PackedConvolution> library_;
  std::unique_ptr<PackedMatrix> matrix_;
  WeightLayout layout_;
  graph::WindowAttrs window_;
};

}  // namespace

void register_window_layer_kernels(KernelRegistry& registry) {
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative"})
    for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                                 DataType::kHalf, DataType::kBFloat16})
      add_kernel(registry, op, dtype, make_built<WindowLayerKernel>);
}

}  // namespace tagflow::devices
