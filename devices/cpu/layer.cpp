// Layers: products by constants, with a bias and element-wise ops on the
// result; Note [What is a layer] in graph/passes/layer.cpp.
//
// Each of the ops has a kernel of its own, of a node that nobody else sees.
// Where these are floats in the usual order, the product is a PackedProduct,
// and the element-wise ops run on each part of it while that is in the cache.
// Where they see segments of its columns, as in a recurrent cell, or there are
// several outputs, the parts are blocks, and the product as a whole is nowhere.
// Everything else goes through the kernels one by one, as it would apart, and
// fails as it would.
#include <string_view>
#include <unordered_set>

#include "devices/cpu/built_kernel.h"
#include "devices/cpu/container_kernels.h"
#include "devices/cpu/elementwise_register.h"
#include "devices/cpu/gemm.h"
#include "devices/cpu/kernels.h"
#include "devices/cpu/layer_tail.h"
#include "devices/cpu/packed_weights.h"
#include "graph/known_value.h"

namespace tagflow::devices {
namespace {

using Strings = std::vector<std::string>;

// One of the ops.
struct Stage {
  graph::Node* node = nullptr;  // null: there is none
  std::unique_ptr<Kernel> kernel;
};

// As many operands as a fused kernel may have.
constexpr int64_t kMostSegments = 64;

class LayerKernel final : public Kernel {
 public:
  Status build(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const auto program, info.attr<Strings>("program"));
    TAGFLOW_ASSIGN(const auto names, info.attr<Strings>("names"));
    TAGFLOW_ASSIGN(dtype_, info.attr<DataType>("T"));
    TAGFLOW_ASSIGN(const bool has_bias, info.attr<bool>("has_bias"));
    comes_packed_ = info.node().op() == "_PackedMatMul";
    const size_t others = size_t(info.num_inputs()) - 2;
    if (has_bias && others == 0)
      return invalid_argument("there is no bias among the inputs");
    const size_t num_operands = others - (has_bias ? 1 : 0);
    TAGFLOW_ASSIGN(segments_, info.attr<int64_t>("segments"));
    TAGFLOW_ASSIGN(width_, info.attr<int64_t>("width"));
    constexpr int64_t kMostColumns = int64_t(1) << 48;
    if (segments_ > kMostSegments || width_ > kMostColumns ||
        (segments_ > 1 && width_ == 0))
      return invalid_argument("{} segments of {} columns", segments_, width_);
    if (program.empty() && num_operands > 0)
      return invalid_argument("{} operands of no program", num_operands);
    if (program.empty() && info.num_outputs() != 1)
      return invalid_argument("{} outputs of no program", info.num_outputs());
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
          info, {names.end() - std::ptrdiff_t(program.size()), names.end()},
          num_operands));
    if (tail_.node == nullptr || tiles_ != nullptr)
      library_ = make_library(info.node());
    return {};
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const Weights weights, weights_of(context));
    if (library_ != nullptr && weights.packed != nullptr) {
      TAGFLOW_ASSIGN(const bool done, compute_packed(context, *weights.packed));
      if (done) return {};
    }
    if (is_matrix_) {
      TAGFLOW_ASSIGN(const bool done, compute_small(context, weights.tensor));
      if (done) return {};
    }
    return compute_one_by_one(context, weights.tensor);
  }

  double cost(const KernelContext& context) const override {
    const Result<Weights> weights = weights_of(context);
    if (!weights.ok()) return 0;
    Tensor factors[] = {context.input(0), weights->tensor};
    KernelContext product(product_.node, factors, context.mutable_outputs(),
                          &context.step(), &context.tag(),
                          &context.allocator());
    return product_.kernel->cost(product);
  }

 private:
  // What the node multiplies by.
  struct Weights {
    Tensor tensor;
    PackedWeights* packed = nullptr;  // where the library can take them
  };

  Result<Weights> weights_of(const KernelContext& context) const {
    if (!comes_packed_) return Weights{context.input(1), weights_.get()};
    TAGFLOW_ASSIGN(const auto* value,
                   value_input<WeightsValue>(context, 1, "packed matrix"));
    PackedWeights* const packed = value->packed();
    const bool fits = packed != nullptr && packed->layout() == layout_;
    return Weights{value->tensor(), fits ? packed : nullptr};
  }

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
    static const std::unordered_set<std::string_view> kOwnAttrs = {
        "N",        "M",     "has_bias", "program", "outputs",
        "segments", "width", "names",    "weights"};
    AttrMap attrs;
    for (const auto& [key, value] : layer.attrs())
      if (!kOwnAttrs.contains(key)) attrs.insert_or_assign(key, value);
    TAGFLOW_ASSIGN(const graph::Endpoint x, add_input());
    TAGFLOW_ASSIGN(const graph::Endpoint weights, add_input());
    const graph::Endpoint operands[] = {x, weights};
    constexpr std::string_view kPrefix = "_Fused";
    const std::string_view op =
        comes_packed_ ? "MatMul"
                      : std::string_view(layer.op()).substr(kPrefix.size());
    return add_stage(product_, name, op, operands, std::move(attrs));
  }

  // The operands of a program are the product's segments, then the others.
  Status add_program(const KernelInfo& info, Strings names, size_t num_others) {
    std::vector<graph::Endpoint> operands;
    std::vector<int64_t> columns;
    for (int64_t i = 0; i < segments_; ++i)
      columns.insert(columns.end(), {i * width_, width_});
    columns.resize(columns.size() + 2 * num_others);
    if (segments_ == 1) columns.clear();
    for (size_t i = 0; i < size_t(segments_) + num_others; ++i) {
      TAGFLOW_ASSIGN(operands.emplace_back(), add_input());
    }
    TAGFLOW_ASSIGN(const auto program, info.attr<Strings>("program"));
    TAGFLOW_ASSIGN(auto outputs, info.attr<std::vector<int64_t>>("outputs"));
    const std::string last = names.back();
    const AttrMap attrs = {{"N", int64_t(operands.size())},
                           {"M", int64_t(info.num_outputs())},
                           {"program", program},
                           {"outputs", std::move(outputs)},
                           {"columns", std::move(columns)},
                           {"names", std::move(names)}};
    TAGFLOW_RETURN_IF_ERROR(
        add_stage(tail_, last, "_FusedElementwise", operands, attrs));
    tiles_ = dynamic_cast<const FusedTiles*>(tail_.kernel.get());
    return {};
  }

  // Null where the library cannot do it, or the weights are not known yet.
  std::unique_ptr<PackedProduct> make_library(const graph::Node& layer) {
    if (dtype_ != DataType::kFloat) return nullptr;
    if (comes_packed_) {
      const auto known = layer.attr<PartialShape>("weights");
      const auto shape =
          known.ok() ? known->to_shape() : std::optional<Shape>();
      if (!shape || shape->rank() != 2 || shape->num_elements() == 0)
        return nullptr;
      layout_ = layout_of_matrix(*shape, is_set("transpose_b"));
    } else {
      const Tensor* value = graph::known_constant(layer.inputs()[1]);
      if (value == nullptr || value->dtype() != dtype_ ||
          value->num_elements() == 0 || !find_layout(*value))
        return nullptr;
      weights_ = PackedWeights::make(layout_, *value);
    }
    if (segments_ > 1 && (layout_.outputs % segments_ != 0 ||
                          layout_.outputs / segments_ != width_))
      return nullptr;
    is_matrix_ = product_.node->op() == "MatMul";
    return PackedProduct::make(layout_);
  }

  // False where the library cannot do it.
  bool find_layout(const Tensor& weights) {
    const std::string& op = product_.node->op();
    if (op == "Conv2D" || op == "DepthwiseConv2dNative") {
      if (weights.rank() != 4) return false;
      Result<graph::WindowAttrs> window =
          graph::window_attrs(*product_.node, 4);
      if (!window.ok() || window->channels_first) return false;
      window_ = std::move(window).value();
      layout_.height = weights.dim(0);
      layout_.width = weights.dim(1);
      layout_.inputs = weights.dim(2);
      layout_.outputs = weights.dim(3);
      if (op != "Conv2D") {
        layout_.groups = layout_.inputs;
        layout_.outputs *= layout_.inputs;
        layout_.inputs = 1;
      }
      return true;
    }
    if (weights.rank() != 2 || is_set("transpose_a") || is_set("adj_x"))
      return false;
    layout_ = layout_of_matrix(weights.shape(),
                               is_set("transpose_b") || is_set("adj_y"));
    return true;
  }

  int64_t channels() const { return layout_.inputs * layout_.groups; }

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
      if (!fits || x.dim(rank - 1) != channels()) return false;
      geometry.batch = 1;
      geometry.channels = channels();
      geometry.in[2] = geometry.out[2] = x.num_elements() / channels();
      output = x.shape();
      output.set_dim(rank - 1, layout_.outputs);
      return geometry.in[2] >= kLeastRows;
    }
    if (x.rank() != 4 || x.dim(3) != channels()) return false;
    Result<Geometry> found = make_geometry(context, *window_, x.shape(),
                                           {1, layout_.height, layout_.width});
    if (!found.ok()) return false;
    geometry = *found;
    Result<Shape> shape =
        make_shape(*window_, geometry.batch, geometry.out, layout_.outputs);
    if (!shape.ok() || shape->num_elements() == 0) return false;
    output = *shape;
    return true;
  }

  int first_operand() const { return bias_.node == nullptr ? 2 : 3; }

  // The bias that fits, or null where there is none; false where it does not.
  bool find_bias(const KernelContext& context, const float*& bias) const {
    if (bias_.node == nullptr) return true;
    const Tensor& values = context.input(2);
    if (values.rank() != 1 || values.dim(0) != layout_.outputs) return false;
    bias = values.data<float>();
    return true;
  }

  // The tail of a product whose results are of that shape; false, and nothing
  // was done, where it has to see the product as a whole.
  Result<bool> prepare(KernelContext& context, const Shape& result,
                       LayerTail& tail) const {
    const auto others = context.inputs().subspan(size_t(first_operand()));
    if (!tail.add_others(others, result) || !tail.fits(*tiles_, segments_))
      return false;
    for (int i = 0; i < context.num_outputs(); ++i) {
      TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(i, result));
      tail.add_output(*out);
    }
    return true;
  }

  Shape result_of(Shape product) const {
    if (segments_ > 1) product.set_dim(product.rank() - 1, width_);
    return product;
  }

  // Whether the product can be where the only output is, and become that.
  bool is_in_place() const {
    return segments_ == 1 && tail_.node->num_outputs() == 1;
  }

  // A few rows, of what is not worth to be shared: the sums begin with the
  // bias. False where nothing was done.
  Result<bool> compute_small(KernelContext& context,
                             const Tensor& weights) const {
    const Tensor& x = context.input(0);
    const float* bias = nullptr;
    if (x.rank() != 2 || x.dim(1) != channels() || x.num_elements() == 0 ||
        x.dim(0) >= kLeastRows || weights.rank() != 2 ||
        weights.dim(layout_.transposed ? 1 : 0) != channels() ||
        weights.dim(layout_.transposed ? 0 : 1) != layout_.outputs ||
        !find_bias(context, bias) ||
        gemm_cost(dtype_, x.dim(0), layout_.outputs, channels()) >=
            kHeavyNanoseconds)
      return false;
    const Shape shape = {x.dim(0), layout_.outputs};
    const auto multiply = [&](float* elements) {
      const int64_t count = shape.num_elements();
      for (int64_t at = 0; bias != nullptr && at < count; at += layout_.outputs)
        std::copy_n(bias, layout_.outputs, elements + at);
      gemm<float>(x.dim(0), layout_.outputs, channels(),
                  {x.data<float>(), channels()},
                  {weights.data<float>(), weights.dim(1), layout_.transposed},
                  elements, layout_.outputs, bias != nullptr);
    };
    if (tail_.node == nullptr) {
      TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
      multiply(out->mutable_data<float>());
      return true;
    }
    LayerTail tail;
    TAGFLOW_ASSIGN(const bool fits, prepare(context, result_of(shape), tail));
    if (!fits) return false;
    TAGFLOW_ASSIGN(Tensor product, context.allocate_temp(dtype_, shape));
    auto* elements = product.mutable_data<float>();
    multiply(elements);
    tail.run(*tiles_, {.first = elements,
                       .rows = x.dim(0),
                       .columns = tail.row(),
                       .segments = segments_,
                       .segment = tail.row()});
    return true;
  }

  // False where nothing was done.
  Result<bool> compute_packed(KernelContext& context,
                              PackedWeights& weights) const {
    Geometry geometry;
    Shape shape;
    const float* bias = nullptr;
    if (!find_geometry(context, geometry, shape) || !find_bias(context, bias))
      return false;
    const PackedProduct::Factors factors{weights,
                                         context.input(0).data<float>(), bias};
    if (tail_.node == nullptr) {
      TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, shape));
      return library_->compute(context, geometry, factors,
                               out->mutable_data<float>(),
                               [](int64_t, int64_t) {});
    }
    if (window_ && !is_in_place()) return false;
    LayerTail tail;
    TAGFLOW_ASSIGN(const bool fits, prepare(context, result_of(shape), tail));
    if (!fits) return false;
    if (!is_in_place())
      return library_->compute_blocks(
          context, geometry, factors, segments_,
          [&](const PackedProduct::Block& block) {
            tail.run(*tiles_, {.first = block.values,
                               .begin = block.first_row * tail.row() +
                                        block.first_column,
                               .rows = block.rows,
                               .columns = block.columns,
                               .segments = segments_,
                               .segment = block.columns});
          });
    auto* elements = context.mutable_outputs()[0].mutable_data<float>();
    return library_->compute(context, geometry, factors, elements,
                             [&](int64_t begin, int64_t end) {
                               tail.run(*tiles_, {.first = elements + begin,
                                                  .begin = begin,
                                                  .columns = end - begin});
                             });
  }

  using Operands = std::vector<Tensor>;

  // What the element-wise ops read.
  Operands operands_of(const KernelContext& context, Tensor result) const {
    const auto others = context.inputs().subspan(size_t(first_operand()));
    Operands operands(size_t(segments_), result);
    operands.insert(operands.end(), others.begin(), others.end());
    return operands;
  }

  static Status run(const KernelContext& context, const Stage& stage,
                    std::span<Tensor> inputs, std::span<Tensor> outputs) {
    KernelContext one(stage.node, inputs, outputs, &context.step(),
                      &context.tag(), &context.allocator());
    const Status status = stage.kernel->compute(one);
    if (status.ok()) return {};
    return Status(status.code(), fmt::format("{}, in \"{}\"", status.message(),
                                             stage.node->name()));
  }

  Status compute_one_by_one(KernelContext& context, Tensor weights) const {
    Tensor result;
    Tensor factors[] = {context.input(0), std::move(weights)};
    TAGFLOW_RETURN_IF_ERROR(run(context, product_, factors, {&result, 1}));
    if (bias_.node != nullptr) {
      Tensor operands[] = {std::move(result), context.input(2)};
      TAGFLOW_RETURN_IF_ERROR(run(context, bias_, operands, {&result, 1}));
    }
    if (tail_.node != nullptr) {
      Operands operands = operands_of(context, std::move(result));
      result = Tensor();
      return run(context, tail_, operands, context.mutable_outputs());
    }
    context.set_output(0, std::move(result));
    return {};
  }

  graph::Graph graph_;  // of the ops
  Stage product_, bias_, tail_;
  const FusedTiles* tiles_ = nullptr;  // of the tail, where it can do that
  DataType dtype_ = DataType::kInvalid;
  // The columns of a product, as the tail sees them: so many of so many.
  int64_t segments_ = 1, width_ = 0;
  bool comes_packed_ = false;  // the weights: a _PackedMatMul
  // Null where the library cannot do it.
  std::unique_ptr<PackedProduct> library_;
  std::shared_ptr<PackedWeights> weights_;  // where they are known
  WeightLayout layout_;
  std::optional<graph::WindowAttrs> window_;
  bool is_matrix_ = false;
};

}  // namespace

void register_layer_kernels(KernelRegistry& registry) {
  for (const char* op : {"_FusedConv2D", "_FusedDepthwiseConv2dNative",
                         "_FusedMatMul", "_FusedBatchMatMulV2"})
    for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                                 DataType::kHalf, DataType::kBFloat16})
      add_kernel(registry, op, dtype, make_built<LayerKernel>);
  add_kernel(registry, "_PackedMatMul", DataType::kFloat,
             make_built<LayerKernel>);
}

}  // namespace tagflow::devices
