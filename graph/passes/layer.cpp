// Layers: products together with element-wise ops on their results.
//
// Note [What is a layer]
// A convolution or a matrix product by weights that are known before the run,
// the bias that is added to its result, and one element-wise op or tree of ops
// (Note [What is fused]) on that become one node, if nobody else reads the
// intermediate results:
//
//   x -> Conv2D -> BiasAdd -> AddV2 -> Relu ->         x -> _FusedConv2D ->
//          ^          ^         ^               is            ^   ^   ^
//          w          b         y                             w   b   y
//
// Its kernel packs the weights once, and applies the other ops to a part of the
// result while that is in the cache. The other operands of the element-wise ops
// have the result's shape, or are single elements. For a matrix product a tree
// may read segments, which are columns of equal number, and may have several
// outputs (Note [What is a group]): so a recurrent cell is one layer. If only
// the matrix product reads a ConcatV2 of columns, the layer reads the inputs of
// that instead. A tree that reads two products belongs to the later one. The
// sums of a product, including the bias, may be rounded in another order than
// by single ops. The pass depends on the kernels of a device, so it runs after
// nodes are placed.
#include <algorithm>

#include "graph/analysis/topology.h"
#include "graph/known_value.h"
#include "graph/node_set.h"
#include "graph/passes/fused_program.h"
#include "graph/passes/passes.h"
#include "graph/passes/product.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

using Strings = std::vector<std::string>;

class Layers {
 public:
  explicit Layers(Program& program)
      : graph_(program.graph),
        readers_(program, Readers::Waits::kNotLast),
        detour_(program) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(graph_));
    for (auto it = order.rbegin(); it != order.rend(); ++it)
      if (is_product(**it)) TAGFLOW_RETURN_IF_ERROR(make_layer(*it));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  struct Layer {
    Node* last = nullptr;  // its output is the layer's
    std::vector<Endpoint> inputs;
    bool has_bias = false;
    int64_t segments = 1, width = 0;
    std::vector<int64_t> outputs;
    Strings program, names;
    NodeList controls;
    NodeList parts;  // the nodes that it replaces
  };

  static bool is_product(const Node& node) {
    const std::optional<Product> product = product_of(node);
    if (!product || product->first ||
        node.output_dtypes()[0] != DataType::kFloat ||
        !node.output_shape(0).has_rank())
      return false;
    if (node.op() == "_PackedMatMul") return is_packed(node);
    if (!is_pure(node)) return false;
    if (product->window) return true;
    for (const char* name : {"transpose_a", "adj_x"})
      if (is_set(node, name)) return false;
    return known_constant(node.inputs()[1])->num_elements() >= kLeastWeights;
  }

  // As made by the pass `pack`: the product alone.
  static bool is_packed(const Node& node) {
    return node.op() == "_PackedMatMul" && node.num_inputs() == 2 &&
           node.num_outputs() == 1 &&
           node.attr<Strings>("program").value().empty();
  }

  Status make_layer(Node* product) {
    Layer layer;
    layer.inputs.assign(product->inputs().begin(), product->inputs().end());
    layer.names = is_packed(*product) ? product->attr<Strings>("names").value()
                                      : Strings{product->name()};
    extend(layer, product);
    add_bias(layer, *product);
    add_tree(layer, *product);
    const size_t num_others = layer.inputs.size() - 2;
    const size_t num_more = add_join(layer, *product);
    if (is_packed(*product) && layer.last == product && num_more == 0)
      return {};
    const int num_outputs = layer.last->num_outputs();
    AttrMap attrs = product->attrs();
    attrs.insert_or_assign("N", int64_t(num_others));
    attrs.insert_or_assign("S", int64_t(num_more));
    attrs.insert_or_assign("has_bias", layer.has_bias);
    attrs.insert_or_assign("M", int64_t(num_outputs));
    attrs.insert_or_assign("segments", layer.segments);
    attrs.insert_or_assign("width", layer.width);
    attrs.insert_or_assign("outputs", std::move(layer.outputs));
    attrs.insert_or_assign("program", std::move(layer.program));
    attrs.insert_or_assign("names", std::move(layer.names));
    TAGFLOW_ASSIGN(
        Node * made,
        detour_.replace(
            layer.last,
            is_packed(*product) ? product->op() : "_Fused" + product->op(),
            layer.inputs, std::move(attrs), layer.controls));
    for (Node* part : layer.parts) detour_.lead_control(part, {made});
    for (int i = 0; i < num_outputs; ++i)
      graph_.set_output_shape(made, i, layer.last->output_shape(i));
    return {};
  }

  // If only this product reads a ConcatV2 of columns, its inputs replace it:
  // returns the number of those after the first.
  size_t add_join(Layer& layer, const Node& product) const {
    constexpr int kMostParts = 16;  // the kernel's maximum
    Node* const join = layer.inputs[0].node;
    const int num_parts = join->num_inputs() - 1;
    const PartialShape& shape = join->output_shape(0);
    if (join->op() != "ConcatV2" || !is_pure(*join) || num_parts < 2 ||
        num_parts > kMostParts || !readers_.only_reader(*join) ||
        !has_same_constraints(product, *join) || !shape.has_rank() ||
        shape.rank() != 2)
      return 0;
    const Endpoint& axis = join->inputs()[size_t(num_parts)];
    NodeList controls(join->control_inputs());
    if (!is_last_axis(axis, 2) || !add_dependence(controls, axis)) return 0;
    layer.controls.add(controls);
    layer.parts.add(join);
    const auto parts = join->inputs().first(size_t(num_parts));
    layer.inputs[0] = parts[0];
    layer.inputs.insert(layer.inputs.end(), parts.begin() + 1, parts.end());
    layer.names.insert(layer.names.begin(), join->name());
    return size_t(num_parts) - 1;
  }

  static void extend(Layer& layer, Node* node) {
    layer.last = node;
    layer.controls.add(node->control_inputs());
    layer.parts.add(node);
  }

  // The only reader of the layer, if it may be part of it.
  std::optional<Readers::Reader> next(const Layer& layer,
                                      const Node& product) const {
    auto reader = readers_.only_reader(*layer.last);
    if (reader && (taken_.contains(*reader->node) ||
                   !has_same_constraints(product, *reader->node)))
      return {};
    return reader;
  }

  void add_bias(Layer& layer, const Node& product) const {
    const auto reader = next(layer, product);
    if (!reader || !is_pure(*reader->node)) return;
    const Node& node = *reader->node;
    const std::string& op = node.op();
    if (op == "BiasAdd") {
      const auto format = node.attr<std::string>("data_format");
      if (reader->input != 0 || !format.ok() || format->starts_with("NC"))
        return;
    } else if (op == "AddV2" || op == "Add") {
      // A vector of constants, one for each channel.
      const Tensor* value = known_constant(node.inputs()[1 - reader->input]);
      const std::optional<Product> facts = product_of(product);
      if (value == nullptr || !facts || value->rank() != 1 ||
          value->dim(0) != facts->channels)
        return;
    } else {
      return;
    }
    layer.has_bias = true;
    layer.inputs.push_back(node.inputs()[1 - reader->input]);
    layer.names.push_back(node.name());
    extend(layer, reader->node);
  }

  void add_tree(Layer& layer, const Node& product) {
    Node* const reader = readers_.only_reading_node(*layer.last);
    if (reader == nullptr || taken_.contains(*reader) ||
        !has_same_constraints(product, *reader))
      return;
    const Node& node = *reader;
    if (!is_fused(node) && fused_op_name(node).empty()) return;
    const PartialShape& shape = node.output_shape(0);
    if (node.output_dtypes()[0] != DataType::kFloat || !shape.has_rank() ||
        !find_segments(layer, product, node))
      return;
    for (const Endpoint& input : node.inputs())
      if (input.node != layer.last &&
          !fits(input.node->output_shape(input.port), shape))
        return;
    taken_.insert(node);
    add_program(layer, node);
    extend(layer, reader);
  }

  // How the tree reads the product; false if it cannot be part of a layer.
  static bool find_segments(Layer& layer, const Node& product,
                            const Node& tree) {
    const PartialShape& whole = layer.last->output_shape(0);
    const std::vector<FusedOperand> operands = fused_operands(tree);
    const bool is_plain =
        tree.num_outputs() == 1 &&
        std::ranges::all_of(operands, [](const FusedOperand& operand) {
          return operand.count == 0;
        });
    if (is_plain) return whole.has_rank() && tree.output_shape(0) == whole;
    const std::optional<Product> facts = product_of(product);
    if (!facts || facts->window ||
        !tree.attr<std::vector<int64_t>>("joined").value().empty())
      return false;
    int64_t width = facts->channels;
    size_t others = 0;
    for (const auto& [value, first, count] : operands) {
      if ((value.node == layer.last) != (count != 0)) return false;
      if (count == 0) {
        ++others;
        continue;
      }
      if (width != facts->channels && width != count) return false;
      width = count;
      if (facts->channels % count != 0 || first % count != 0) return false;
    }
    const int64_t segments = facts->channels / width;
    if (size_t(segments) + others > kMostFused) return false;
    layer.width = width;
    layer.segments = segments;
    return true;
  }

  static bool fits(const PartialShape& shape, const PartialShape& result) {
    return shape.num_elements() == 1 ||
           (shape.has_rank() && shape.compatible(result));
  }

  // Adds the tree's program with the layer's numbers: the segments, the other
  // inputs, the results.
  static void add_program(Layer& layer, const Node& tree) {
    std::vector<size_t> numbers;
    auto next = size_t(layer.segments);
    for (const auto& [value, first, count] : fused_operands(tree)) {
      if (value.node == layer.last) {
        numbers.push_back(count == 0 ? 0 : size_t(first / layer.width));
      } else {
        numbers.push_back(next++);
        layer.inputs.push_back(value);
      }
    }
    FusedProgram program(next);
    numbers = program.add(tree, std::move(numbers));
    layer.program = program.lines();
    layer.names.insert(layer.names.end(), program.names().begin(),
                       program.names().end());
    if (!is_fused(tree)) return;
    layer.outputs = tree.attr<std::vector<int64_t>>("outputs").value();
    for (int64_t& output : layer.outputs)
      output = int64_t(numbers[size_t(output)]);
  }

  Graph& graph_;
  const Readers readers_;
  Detour detour_;
  NodeSet taken_;  // element-wise ops that are in a layer
};

}  // namespace

Result<bool> fuse_layers(Program& program, const PassContext&) {
  return Layers(program).run();
}

}  // namespace tagflow::graph
