// Layers: products by constants, with a bias and element-wise ops on the
// result; Note [What is a layer] in graph/passes/layer.cpp.
//
// Each of the ops has a kernel of its own, of a node that nobody else sees.
// Where these are floats in the usual order, the product is a PackedProduct,
// and the element-wise ops run on each part of it while that is in the cache.
// Everything else goes through the kernels one by one, as it would apart, and
// fails as it would.
#include "devices/cpu/built_kernel.h"
#include "devices/cpu/elementwise_register.h"
#include "devices/cpu/fused_tiles.h"
#include "devices/cpu/gemm.h"
#include "devices/cpu/kernels.h"
#include "devices/cpu/packed_product.h"
#include "graph/known_value.h"

namespace tagflow::devices {
namespace {

using Strings = std::vector<std::string>;

// One of the ops.
struct Stage {
  graph::Node* node = nullptr;  // null: there is none
  std::unique_ptr<Kernel> kernel;
};

class LayerKernel final : public Kernel {
 public:
  Status build(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const auto program, info.attr<Strings>("program"));
    TAGFLOW_ASSIGN(const auto names, info.attr<Strings>("names"));
    TAGFLOW_ASSIGN(dtype_, info.attr<DataType>("T"));
    TAGFLOW_ASSIGN(const bool has_bias, info.attr<bool>("has_bias"));
    const size_t others = size_t(info.num_inputs()) - 2;
    if (has_bias && others == 0)
      return invalid_argument("there is no bias among the inputs");
    const size_t num_operands = others - (has_bias ? 1 : 0);
    if (program.empty() && num_operands > 0)
      return invalid_argument("{} operands of no program", num_operands);
    if (names.size() != program.size() + (has_bias ? 2 : 1))
      return invalid_argument("{} names for {} ops", names.size(),
                              program.size() + (has_bias ? 2 : 1));
    TAGFLOW_RETURN_IF_ERROR(add_product(info.node(), names[0]));
    const graph::Endpoint product{product_.node, 0};
    if (has_bias) {
      TAGFLOW_ASSIGN(const graph::Endpoint operand, add_input());
      const graph::Endpoint operands[] = {product, operand};
      TAGFLOW_RETURN_IF_ERROR(add_stage(bias_, names[1], "BiasAdd", operands));
    }
    if (!program.empty())
      TAGFLOW_RETURN_IF_ERROR(add_program(
          program, {names.end() - std::ptrdiff_t(program.size()), names.end()},
          num_operands));
    if (tail_.node == nullptr || tiles_ != nullptr) packed_ = pack(info.node());
    return {};
  }

  Status compute(KernelContext& context) const override {
    if (packed_ != nullptr) {
      TAGFLOW_ASSIGN(const bool done, compute_packed(context));
      if (done) return {};
    }
    if (is_matrix_) {
      TAGFLOW_ASSIGN(const bool done, compute_small(context));
      if (done) return {};
    }
    return compute_one_by_one(context);
  }

  double cost(const KernelContext& context) const override {
    KernelContext product(product_.node, context.mutable_inputs().first(2),
                          context.mutable_outputs(), &context.step(),
                          &context.tag(), &context.allocator());
    return product_.kernel->cost(product);
  }

 private:
  // --- Making ---------------------------------------------------------------

  Result<graph::Endpoint> add_input() {
    TAGFLOW_ASSIGN(graph::Node * input,
                   graph_.add(graph_.unique_name("input"), "Placeholder", {},
                              {{"dtype", dtype_}}));
    return graph::Endpoint{input, 0};
  }

  Status add_stage(Stage& stage, const std::string& name, std::string_view op,
                   std::span<const graph::Endpoint> inputs,
                   AttrMap attrs = {}) {
    TAGFLOW_ASSIGN(stage.node, graph_.add(graph_.unique_name(name), op, inputs,
                                          std::move(attrs)));
    TAGFLOW_ASSIGN(stage.kernel,
                   KernelRegistry::global().make(*stage.node, "CPU"));
    return {};
  }

  Status add_product(const graph::Node& layer, const std::string& name) {
    AttrMap attrs;
    for (const auto& [key, value] : layer.attrs())
      if (key != "N" && key != "has_bias" && key != "program" && key != "names")
        attrs.insert_or_assign(key, value);
    TAGFLOW_ASSIGN(const graph::Endpoint x, add_input());
    TAGFLOW_ASSIGN(const graph::Endpoint weights, add_input());
    const graph::Endpoint operands[] = {x, weights};
    constexpr std::string_view kPrefix = "_Fused";
    const std::string_view op = layer.op();
    return add_stage(product_, name, op.substr(kPrefix.size()), operands,
                     std::move(attrs));
  }

  Status add_program(const Strings& program, Strings names,
                     size_t num_operands) {
    std::vector<graph::Endpoint> operands;
    for (size_t i = 0; i < 1 + num_operands; ++i) {
      TAGFLOW_ASSIGN(operands.emplace_back(), add_input());
    }
    const std::string last = names.back();
    const AttrMap attrs = {{"N", int64_t(operands.size())},
                           {"program", program},
                           {"names", std::move(names)}};
    TAGFLOW_RETURN_IF_ERROR(
        add_stage(tail_, last, "_FusedElementwise", operands, attrs));
    tiles_ = dynamic_cast<const FusedTiles*>(tail_.kernel.get());
    return {};
  }

  // Null where the library cannot do it, or the weights are not known yet.
  std::unique_ptr<PackedProduct> pack(const graph::Node& layer) {
    const Tensor* value = graph::known_constant(layer.inputs()[1]);
    if (value == nullptr || dtype_ != DataType::kFloat ||
        value->dtype() != dtype_ || value->num_elements() == 0)
      return nullptr;
    const std::string& op = product_.node->op();
    if (value->num_elements() == 0) return nullptr;
    PackedProduct::Weights weights{.tensor = *value};
    if (op == "Conv2D" || op == "DepthwiseConv2dNative") {
      if (value->rank() != 4) return nullptr;
      Result<graph::WindowAttrs> window =
          graph::window_attrs(*product_.node, 4);
      if (!window.ok() || window->channels_first) return nullptr;
      window_ = std::move(window).value();
      weights.height = value->dim(0);
      weights.width = value->dim(1);
      weights.inputs = value->dim(2);
      weights.outputs = value->dim(3);
      if (op != "Conv2D") {
        weights.groups = weights.inputs;
        weights.outputs *= weights.inputs;
        weights.inputs = 1;
      }
    } else {
      if (value->rank() != 2 || is_set("transpose_a") || is_set("adj_x"))
        return nullptr;
      weights.transposed = is_set("transpose_b") || is_set("adj_y");
      is_matrix_ = op == "MatMul";
      is_transposed_ = weights.transposed;
      weights.inputs = value->dim(weights.transposed ? 1 : 0);
      weights.outputs = value->dim(weights.transposed ? 0 : 1);
    }
    channels_ = weights.inputs * weights.groups;
    outputs_ = weights.outputs;
    size_ = {1, weights.height, weights.width};
    return PackedProduct::make(std::move(weights));
  }

  bool is_set(std::string_view flag) const {
    const auto value = product_.node->attr<bool>(flag);
    return value.ok() && *value;
  }

  // --- Running --------------------------------------------------------------

  // Fewer rows of a matrix are quicker by a plain product, which workers can
  // share.
  static constexpr int64_t kLeastRows = 8;

  // The geometry of an input; false where the kernels one by one must see it.
  bool find_geometry(const KernelContext& context, Geometry& geometry,
                     Shape& output) const {
    const Tensor& x = context.input(0);
    if (x.num_elements() == 0 || x.dtype() != dtype_) return false;
    if (!window_) {
      const int rank = x.rank();
      const bool fits = product_.node->op() == "MatMul" ? rank == 2 : rank >= 2;
      if (!fits || x.dim(rank - 1) != channels_) return false;
      geometry.batch = 1;
      geometry.channels = channels_;
      geometry.in[2] = geometry.out[2] = x.num_elements() / channels_;
      output = x.shape();
      output.set_dim(rank - 1, outputs_);
      return geometry.in[2] >= kLeastRows;
    }
    if (x.rank() != 4 || x.dim(3) != channels_) return false;
    Result<Geometry> found = make_geometry(context, *window_, x.shape(), size_);
    if (!found.ok()) return false;
    geometry = *found;
    Result<Shape> shape =
        make_shape(*window_, geometry.batch, geometry.out, outputs_);
    if (!shape.ok() || shape->num_elements() == 0) return false;
    output = *shape;
    return true;
  }

  int first_operand() const { return bias_.node == nullptr ? 2 : 3; }

  // The bias that fits, or null where there is none; false where it does not.
  bool find_bias(const KernelContext& context, const float*& bias) const {
    if (bias_.node == nullptr) return true;
    const Tensor& values = context.input(2);
    if (values.rank() != 1 || values.dim(0) != outputs_) return false;
    bias = values.data<float>();
    return true;
  }

  // A few rows, of what is not worth to be shared: the sums begin with the
  // bias. False where nothing was done.
  Result<bool> compute_small(KernelContext& context) const {
    const Tensor& x = context.input(0);
    const Tensor& weights = context.input(1);
    const float* bias = nullptr;
    if (x.rank() != 2 || x.dim(1) != channels_ || x.num_elements() == 0 ||
        x.dim(0) >= kLeastRows || weights.rank() != 2 ||
        weights.dim(is_transposed_ ? 1 : 0) != channels_ ||
        weights.dim(is_transposed_ ? 0 : 1) != outputs_ ||
        !find_bias(context, bias) ||
        gemm_cost(dtype_, x.dim(0), outputs_, channels_) >= kHeavyNanoseconds)
      return false;
    TAGFLOW_ASSIGN(Tensor * out,
                   context.allocate_output(0, {x.dim(0), outputs_}));
    auto* elements = out->mutable_data<float>();
    const int64_t count = out->num_elements();
    const auto multiply = [&] {
      for (int64_t at = 0; bias != nullptr && at < count; at += outputs_)
        std::copy_n(bias, outputs_, elements + at);
      gemm<float>(x.dim(0), outputs_, channels_, {x.data<float>(), channels_},
                  {weights.data<float>(), weights.dim(1), is_transposed_},
                  elements, outputs_, bias != nullptr);
    };
    if (tail_.node == nullptr) {
      multiply();
      return true;
    }
    Operands operands = operands_of(context, *out);
    Tensor unused;
    const KernelContext tail = context_of(context, tail_, operands, unused);
    if (!tiles_->can_run_in_place(tail)) return false;
    multiply();
    tiles_->run_in_place(tail, elements, 0, count);
    return true;
  }

  // False where nothing was done.
  Result<bool> compute_packed(KernelContext& context) const {
    Geometry geometry;
    Shape shape;
    const float* bias = nullptr;
    if (!find_geometry(context, geometry, shape) || !find_bias(context, bias))
      return false;
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
    if (tail_.node == nullptr)
      return packed_->compute(context, geometry, context.input(0).data<float>(),
                              bias, out->mutable_data<float>(),
                              [](int64_t, int64_t) {});
    Operands operands = operands_of(context, *out);
    Tensor unused;
    const KernelContext tail = context_of(context, tail_, operands, unused);
    if (!tiles_->can_run_in_place(tail)) return false;
    auto* elements = out->mutable_data<float>();
    return packed_->compute(context, geometry, context.input(0).data<float>(),
                            bias, elements, [&](int64_t begin, int64_t end) {
                              tiles_->run_in_place(tail, elements, begin, end);
                            });
  }

  using Operands = std::vector<Tensor>;

  // What the element-wise ops read.
  Operands operands_of(const KernelContext& context, Tensor result) const {
    const auto others = context.inputs().subspan(size_t(first_operand()));
    Operands operands;
    operands.reserve(1 + others.size());
    operands.push_back(std::move(result));
    operands.insert(operands.end(), others.begin(), others.end());
    return operands;
  }

  static KernelContext context_of(const KernelContext& context,
                                  const Stage& stage, std::span<Tensor> inputs,
                                  Tensor& output) {
    return KernelContext(stage.node, inputs, {&output, 1}, &context.step(),
                         &context.tag(), &context.allocator());
  }

  static Status run(const KernelContext& context, const Stage& stage,
                    std::span<Tensor> inputs, Tensor& output) {
    KernelContext one = context_of(context, stage, inputs, output);
    const Status status = stage.kernel->compute(one);
    if (status.ok()) return {};
    return Status(status.code(), fmt::format("{}, in \"{}\"", status.message(),
                                             stage.node->name()));
  }

  Status compute_one_by_one(KernelContext& context) const {
    Tensor result;
    TAGFLOW_RETURN_IF_ERROR(
        run(context, product_, context.mutable_inputs().first(2), result));
    if (bias_.node != nullptr) {
      Tensor operands[] = {std::move(result), context.input(2)};
      TAGFLOW_RETURN_IF_ERROR(run(context, bias_, operands, result));
    }
    if (tail_.node != nullptr) {
      Operands operands = operands_of(context, std::move(result));
      result = Tensor();
      TAGFLOW_RETURN_IF_ERROR(run(context, tail_, operands, result));
    }
    context.set_output(0, std::move(result));
    return {};
  }

  graph::Graph graph_;  // of the ops
  Stage product_, bias_, tail_;
  const FusedTiles* tiles_ = nullptr;  // of the tail, where it can do that
  DataType dtype_ = DataType::kInvalid;
  // Of what is packed.
  std::unique_ptr<PackedProduct> packed_;
  std::optional<graph::WindowAttrs> window_;
  int64_t channels_ = 0, outputs_ = 0;
  bool is_matrix_ = false, is_transposed_ = false;  // the weights
  Spatial size_{1, 1, 1};
};

}  // namespace

void register_layer_kernels(KernelRegistry& registry) {
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative",
                         "_FusedMatMul", "_FusedBatchMatMulV2"})
    for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                                 DataType::kHalf, DataType::kBFloat16})
      add_kernel(registry, op, dtype, make_built<LayerKernel>);
}

}  // namespace tagflow::devices
