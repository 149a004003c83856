// Moves constant scales and shifts of the result of a convolution or a matrix
// product into its weights.
//
// Note [What is absorbed]
// If the result of a product by constant weights is only scaled and shifted, by
// constants with an element per output channel or a single one, it equals the
// same product by other weights, and one bias:
//
//   x -> Conv2D -> Mul -> AddV2 -> Mul ->      x -> Conv2D -> BiasAdd ->
//          ^        ^       ^       ^     is          ^          ^
//          w        s       b       t               w s t       b t
//
// A normalisation by constant means and variances is such a scale and shift. A
// chain of shifts alone is unchanged. Zeros that a Pad adds around the input of
// a convolution become part of its own padding. This pass changes rounding: a
// sum of scaled products differs from the scaled sum in the last bits, and may
// overflow in other places. If a new weight, or the bias, is not finite,
// nothing is changed. Nobody else may read a result in between, or use the
// weights, which would then exist twice.
#include <algorithm>
#include <cmath>

#include "graph/analysis/topology.h"
#include "graph/dtype_visit.h"
#include "graph/known_value.h"
#include "graph/passes/passes.h"
#include "graph/passes/product.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

using Numbers = std::vector<double>;  // by output channel

// Empty if the constant is not a known tensor of floats.
Numbers numbers_of(const Tensor& tensor) {
  Numbers numbers;
  detail::visit_among<float, double>(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    for (const T value : tensor.flat<T>()) numbers.push_back(double(value));
  });
  return numbers;
}

// A scale, then a shift.
struct Affine {
  Numbers scale, shift;

  explicit Affine(int64_t channels)
      : scale(size_t(channels), 1), shift(size_t(channels), 0) {}

  void multiply(const Numbers& by) {
    for (size_t i = 0; i < scale.size(); ++i) {
      scale[i] *= by[i];
      shift[i] *= by[i];
    }
  }
  void add(const Numbers& what, double sign = 1) {
    for (size_t i = 0; i < shift.size(); ++i) shift[i] += sign * what[i];
  }
};

class Absorption {
 public:
  explicit Absorption(Program& program)
      : graph_(program.graph), readers_(program), detour_(program) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(graph_));
    for (Node* node : order) {
      const std::optional<Product> product = product_of(*node);
      if (!product || !is_pure(*node)) continue;
      TAGFLOW_RETURN_IF_ERROR(absorb(node, *product));
    }
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  // The parts that are combined for one product.
  struct Chain {
    Chain(Node* node, const Product& product)
        : last(node), affine(product.channels) {}

    Node* last;  // its result is that of the chain
    Affine affine;
    bool scales = false, shifts = false;
    NodeList weights_wait, wait;  // control inputs
  };

  Status absorb(Node* node, const Product& product) {
    Chain chain(node, product);
    Node* const pad = padding_of(*node, product);
    if (Node* const weights = own_weights(*node)) {
      chain.weights_wait.add(weights->control_inputs());
      while (extend(chain, *node, product)) {
      }
    }
    Tensor value;
    if (chain.scales) value = scaled_weights(*node, product, chain.affine);
    if (!value.valid()) {
      if (pad == nullptr) return {};
      // Only the padding.
      chain = Chain(node, product);
    }
    return rebuild(node, product, pad, chain, std::move(value));
  }

  // The Const of the weights, if only this node reads it.
  Node* own_weights(const Node& node) const {
    Node* const weights = node.inputs()[1].node;
    const DataType dtype = node.output_dtypes()[0];
    if (!weights->is_const() || !readers_.only_reader(*weights) ||
        weights->control_inputs().size() > kMaxControls ||
        (dtype != DataType::kFloat && dtype != DataType::kDouble))
      return nullptr;
    return weights;
  }

  // --- Chains ---------------------------------------------------------------

  // Adds the only reader of the chain's end, if it has a suitable op.
  bool extend(Chain& chain, const Node& of, const Product& product) {
    const auto reader = readers_.only_reader(*chain.last);
    if (!reader || !is_pure(*reader->node) ||
        !has_same_constraints(of, *reader->node))
      return false;
    const Node& node = *reader->node;
    const std::string& op = node.op();
    const bool first = reader->input == 0;
    if (op.starts_with("FusedBatchNorm"))
      return first && extend_by_norm(chain, reader->node, product);
    const bool is_bias = op == "BiasAdd";
    if (is_bias && !(first && has_channels_of(node, product))) return false;
    const bool is_sum = op == "AddV2" || op == "Add" || is_bias;
    const bool is_division = (op == "RealDiv" || op == "Div") && first;
    if (!is_sum && !is_division && op != "Mul" && op != "Sub") return false;
    NodeList wait;
    Numbers by = by_channel(node, first ? 1 : 0, product, wait);
    if (by.empty()) return false;
    if (is_sum) {
      chain.affine.add(by);
      chain.shifts = true;
    } else if (op == "Sub") {
      if (!first) chain.affine.multiply(Numbers(by.size(), -1));
      chain.affine.add(by, first ? -1 : 1);
      chain.scales = chain.scales || !first;
      chain.shifts = true;
    } else {
      if (is_division)
        for (double& value : by) value = 1 / value;
      chain.affine.multiply(by);
      chain.scales = true;
    }
    join(chain, reader->node, wait);
    return true;
  }

  // (x - mean) / sqrt(variance + epsilon) * factor + offset
  bool extend_by_norm(Chain& chain, Node* norm, const Product& product) {
    const Node& node = *norm;
    const auto training = node.attr<bool>("is_training");
    const auto epsilon = node.attr<float>("epsilon");
    if (!training.ok() || *training || !epsilon.ok() ||
        !has_channels_of(node, product) || !readers_.only_first_output(node))
      return false;
    NodeList wait;
    Numbers given[4];
    for (int i = 0; i < 4; ++i) {
      given[i] = by_channel(node, i + 1, product, wait, /*vector=*/true);
      if (given[i].empty()) return false;
    }
    for (size_t i = 0; i < given[0].size(); ++i)
      given[0][i] /= std::sqrt(given[3][i] + double(*epsilon));
    chain.affine.add(given[2], -1);
    chain.affine.multiply(given[0]);
    chain.affine.add(given[1]);
    chain.scales = chain.shifts = true;
    join(chain, norm, wait);
    return true;
  }

  static void join(Chain& chain, Node* node, const NodeList& wait) {
    chain.last = node;
    chain.wait.add(node->control_inputs());
    chain.weights_wait.add(wait);
  }

  static bool has_channels_of(const Node& node, const Product& product) {
    const auto format = node.attr<std::string>("data_format");
    return format.ok() && (format->starts_with("NC")) == product.first;
  }

  // An operand that is a constant with an element for each channel, or a single
  // one; `wait` gets its control inputs. Otherwise empty.
  Numbers by_channel(const Node& node, int input, const Product& product,
                     NodeList& wait, bool vector = false) const {
    const Endpoint& source = node.inputs()[size_t(input)];
    const Tensor* value =
        source.node->is_const() ? known_constant(source) : nullptr;
    if (value == nullptr || !add_dependence(wait, source)) return {};
    const bool is_bias = vector || node.op() == "BiasAdd";
    if (is_bias ? value->rank() != 1 : value->rank() > product.rank) return {};
    const int channel_dim =
        is_bias ? 0
                : value->rank() - 1 - (product.first ? product.rank - 2 : 0);
    for (int i = 0; i < value->rank(); ++i)
      if (value->dim(i) != 1 &&
          (i != channel_dim || value->dim(i) != product.channels))
        return {};
    if (is_bias && value->dim(0) != product.channels) return {};
    Numbers numbers = numbers_of(*value);
    if (numbers.size() == 1)
      numbers.resize(size_t(product.channels), numbers[0]);
    return numbers;
  }

  // --- Padding --------------------------------------------------------------

  // The Pad before a convolution, if the convolution can add its zeros.
  Node* padding_of(const Node& node, const Product& product) const {
    if (!product.window || product.window->padding == Padding::kSame)
      return nullptr;
    Node* const pad = node.inputs()[0].node;
    if (pad->op() != "Pad" || !readers_.only_reader(*pad) || !is_pure(*pad) ||
        !has_same_constraints(node, *pad))
      return nullptr;
    const Endpoint& sizes = pad->inputs()[1];
    NodeList unused;
    if (!sizes.node->is_const() || !add_dependence(unused, sizes))
      return nullptr;
    return paddings(*pad, *product.window).empty() ? nullptr : pad;
  }

  // The paddings of both together. Empty if a window cannot pad like the Pad.
  static std::vector<int64_t> paddings(const Node& pad,
                                       const WindowAttrs& window) {
    const Tensor* sizes = known_constant(pad.inputs()[1]);
    if (sizes == nullptr || sizes->num_elements() != 2 * window.rank) return {};
    std::vector<int64_t> sum = window.explicit_paddings;
    sum.resize(size_t(2 * window.rank));
    detail::visit_among<int32_t, int64_t>(
        sizes->dtype(), [&]<class T>(TypeTag<T>) {
          for (size_t i = 0; i < sum.size(); ++i) {
            const auto size = int64_t(sizes->data<T>()[i]);
            const auto dim = int(i / 2);
            constexpr int64_t kMost = 1 << 20;
            const bool fits =
                size >= 0 && size <= kMost && sum[i] <= kMost &&
                (size == 0 || (dim != 0 && dim != window.channel_dim()));
            if (sum.empty() || !fits) return sum.clear();
            sum[i] += size;
          }
        });
    return sum;
  }

  // --- Writing --------------------------------------------------------------

  // Invalid if an element would not be finite.
  static Tensor scaled_weights(const Node& node, const Product& product,
                               const Affine& affine) {
    const Tensor& old = *known_constant(node.inputs()[1]);
    Result<Tensor> made = Tensor::allocate(old.dtype(), old.shape());
    if (!made.ok()) return {};
    bool finite = true;
    detail::visit_among<float, double>(old.dtype(), [&]<class T>(TypeTag<T>) {
      finite = std::ranges::all_of(
          affine.shift, [](double value) { return std::isfinite(T(value)); });
      const T* from = old.data<T>();
      T* to = made->mutable_data<T>();
      const T* const end = from + old.num_elements();
      while (from < end)
        for (const double scale : affine.scale)
          for (int64_t i = 0; i < product.stride; ++i, ++from, ++to) {
            *to = T(double(*from) * scale);
            finite = finite && std::isfinite(*to);
          }
    });
    return finite ? std::move(made).value() : Tensor();
  }

  static Tensor bias_of(DataType dtype, const Numbers& shift) {
    Result<Tensor> made = Tensor::allocate(dtype, Shape{int64_t(shift.size())});
    if (!made.ok()) return {};
    detail::visit_among<float, double>(dtype, [&]<class T>(TypeTag<T>) {
      std::ranges::transform(shift, made->mutable_data<T>(),
                             [](double value) { return T(value); });
    });
    return std::move(made).value();
  }

  Result<Node*> add_constant(const Node& like, std::string_view ending,
                             Tensor value, const NodeList& wait) {
    const DataType dtype = value.dtype();
    return add_for(graph_, like, name_after(graph_, like, ending), "Const", {},
                   {{"value", std::move(value)}, {"dtype", dtype}}, wait);
  }

  Status rebuild(Node* node, const Product& product, Node* pad,
                 const Chain& chain, Tensor weights) {
    const DataType dtype = node->output_dtypes()[0];
    Tensor bias;
    if (chain.shifts) {
      bias = bias_of(dtype, chain.affine.shift);
      if (!bias.valid()) return {};
    }
    std::vector<Endpoint> inputs = {detour_.end(node->inputs()[0]),
                                    node->inputs()[1]};
    NodeList wait(node->control_inputs());
    AttrMap attrs = node->attrs();
    if (pad != nullptr) {
      inputs[0] = detour_.end(pad->inputs()[0]);
      wait.add(pad->control_inputs());
      add_dependence(wait, pad->inputs()[1]);
      attrs.insert_or_assign("padding", std::string("EXPLICIT"));
      attrs.insert_or_assign("explicit_paddings",
                             paddings(*pad, *product.window));
    }
    if (weights.valid()) {
      TAGFLOW_ASSIGN(Node * made,
                     add_constant(*node, "/weights", std::move(weights),
                                  chain.weights_wait));
      inputs[1] = {made, 0};
    }
    if (!bias.valid()) {
      wait.add(chain.wait);
      return take_over(chain.last, node->op(), inputs, std::move(attrs), wait);
    }
    TAGFLOW_ASSIGN(Node * made,
                   add_for(graph_, *node, name_after(graph_, *node), node->op(),
                           inputs, std::move(attrs), wait));
    graph_.set_output_shape(made, 0, node->output_shape(0));
    TAGFLOW_ASSIGN(Node * offset, add_constant(*node, "/bias", std::move(bias),
                                               chain.weights_wait));
    const Endpoint operands[] = {{made, 0}, {offset, 0}};
    return take_over(
        chain.last, "BiasAdd", operands,
        {{"T", dtype},
         {"data_format", std::string(product.first ? "NCHW" : "NHWC")}},
        chain.wait);
  }

  Status take_over(Node* old, std::string_view op,
                   std::span<const Endpoint> inputs, AttrMap attrs,
                   const NodeList& wait) {
    const PartialShape shape = old->output_shape(0);
    TAGFLOW_ASSIGN(Node * made,
                   detour_.replace(old, op, inputs, std::move(attrs), wait));
    if (made->output_shape(0).compatible(shape))
      graph_.set_output_shape(made, 0, shape);
    return {};
  }

  Graph& graph_;
  const Readers readers_;
  Detour detour_;
};

}  // namespace

Result<bool> absorb_scales(Program& program, const PassContext&) {
  return Absorption(program).run();
}

}  // namespace tagflow::graph
