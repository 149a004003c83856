// Packs weights for the products of a loop.
//
// Note [What is packed]
// A recurrent network multiplies by the same matrix in each iteration. Such a
// matrix enters the loop as a constant. It is packed once, before the loop, in
// the order that the product's kernel needs:
//
//   w -> Enter -> MatMul     is     w -> _PackWeights -> Enter -> _PackedMatMul
//
// If only a Split or SplitV reads the product, and only one of its outputs is
// read, as when a gradient by an input is not needed, only the columns of that
// output are packed, and the split is removed. This is done only for transposed
// weights: a column of the product is a row of these weights, so the rows are
// contiguous. The packed matrix is a variant, and lives as long as the loop.
// The product may be part of a layer (Note [What is a layer]). Its rounding is
// the same as for constant weights. Constant weights are packed by their layer.
// If only some columns of their product are read, they are cut here, also
// outside of loops.
//
// A sum of two such products that nobody else reads, as of the input and the
// state of a recurrent cell, becomes one product: of both inputs side by side,
// by both weights on top of each other. Its sums are rounded in another order.
//
// Like layers, this depends on the kernels of a device.
#include <map>

#include "graph/known_value.h"
#include "graph/node_set.h"
#include "graph/passes/passes.h"
#include "graph/passes/product.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

class Packing {
 public:
  explicit Packing(Program& program)
      : graph_(program.graph),
        readers_(program, Readers::Waits::kNotLast),
        detour_(program) {}

  Result<bool> run() {
    std::vector<Node*> products;
    std::vector<Sum> sums;
    for (Node* node : graph_.nodes()) {
      if (can_pack(*node)) products.push_back(node);
      if (const auto sum = find_sum(node)) sums.push_back(*sum);
    }
    NodeSet done;
    for (const Sum& sum : sums) {
      TAGFLOW_RETURN_IF_ERROR(rewrite(sum));
      done.insert(*sum.first);
      done.insert(*sum.second);
    }
    for (Node* product : products)
      if (!done.contains(*product)) TAGFLOW_RETURN_IF_ERROR(rewrite(product));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  static bool can_pack(const Node& node) {
    if (node.op() != "MatMul" || !is_pure(node) ||
        is_set(node, "transpose_a") ||
        node.output_dtypes()[0] != DataType::kFloat ||
        !node.output_shape(0).has_rank())
      return false;
    const Endpoint& weights = node.inputs()[1];
    if (!is_loop_constant(*weights.node) && known_constant(weights) == nullptr)
      return false;
    const PartialShape& shape = shape_outside(weights);
    return shape.fully_known() && shape.rank() == 2 &&
           shape.num_elements() >= kLeastWeights;
  }

  static const PartialShape& shape_outside(Endpoint value) {
    while (is_loop_constant(*value.node)) value = value.node->inputs()[0];
    return value.node->output_shape(value.port);
  }

  // --- Sums of two products --------------------------------------------------

  struct Sum {
    Node *first = nullptr, *second = nullptr, *add = nullptr;
  };

  std::optional<Sum> find_sum(Node* add) const {
    if ((add->op() != "AddV2" && add->op() != "Add") || !is_pure(*add) ||
        !add->output_shape(0).fully_known())
      return {};
    const Sum sum{add->inputs()[0].node, add->inputs()[1].node, add};
    for (const Node* product : {sum.first, sum.second}) {
      // No broadcasting.
      if (!can_pack(*product) ||
          known_constant(weights_of(*product)) != nullptr ||
          !readers_.only_reader(*product) ||
          product->output_shape(0) != add->output_shape(0) ||
          !has_same_constraints(*product, *add) || !has_known_width(*product))
        return {};
    }
    if (is_set(*sum.first, "transpose_b") !=
            is_set(*sum.second, "transpose_b") ||
        !can_join(weights_of(*sum.first), weights_of(*sum.second)))
      return {};
    return sum;
  }

  // Unequal widths must fail: in a combined product two errors could cancel
  // each other out.
  static bool has_known_width(const Node& product) {
    const Endpoint& columns = product.inputs()[0];
    const PartialShape& shape = columns.node->output_shape(columns.port);
    return shape.has_rank() && shape.rank() == 2 &&
           shape.dim(1) == shape_outside(weights_of(product))
                               .dim(is_set(product, "transpose_b") ? 1 : 0);
  }

  // Whether they come from one frame, in which a Const is possible.
  static bool can_join(Endpoint a, Endpoint b) {
    while (is_loop_constant(*a.node) && is_loop_constant(*b.node)) {
      a = a.node->inputs()[0];
      b = b.node->inputs()[0];
    }
    return !is_loop_constant(*a.node) && !is_loop_constant(*b.node) &&
           control_tells_deadness(a);
  }

  static const Endpoint& weights_of(const Node& product) {
    return product.inputs()[1];
  }

  Status rewrite(const Sum& sum) {
    const Form form{.is_transposed = is_set(*sum.first, "transpose_b")};
    const Endpoint weights[] = {weights_of(*sum.first),
                                weights_of(*sum.second)};
    TAGFLOW_ASSIGN(const Endpoint packed, pack(weights, form));
    const Endpoint columns[] = {sum.first->inputs()[0],
                                sum.second->inputs()[0]};
    TAGFLOW_ASSIGN(const Endpoint joined,
                   join(*sum.add, columns, 1, packed.node));
    PartialShape shape = shape_outside(weights[0]);
    const int axis = form.is_transposed ? 1 : 0;
    shape.set_dim(axis, shape.dim(axis) + shape_outside(weights[1]).dim(axis));
    const Endpoint inputs[] = {joined, packed};
    AttrMap attrs = attrs_of(form, shape);
    attrs["names"] = std::vector<std::string>{sum.add->name()};
    NodeList controls;
    for (const Node* node : {sum.first, sum.second, sum.add})
      controls.add(node->control_inputs());
    TAGFLOW_ASSIGN(Node * made,
                   detour_.replace(sum.add, "_PackedMatMul", inputs,
                                   std::move(attrs), controls));
    graph_.set_output_shape(made, 0, sum.add->output_shape(0));
    for (Node* product : {sum.first, sum.second})
      detour_.lead_control(product, {made});
    return {};
  }

  // Joins two matrices side by side, or on top; `beside` is in their frame.
  Result<Endpoint> join(const Node& like, std::span<const Endpoint> parts,
                        int32_t axis, Node* beside) {
    Node* const waits[] = {beside};
    TAGFLOW_ASSIGN(
        Node * number,
        add_for(graph_, like, name_after(graph_, like, "/axis"), "Const", {},
                {{"value", Tensor::scalar(axis)}, {"dtype", DataType::kInt32}},
                waits));
    const Endpoint inputs[] = {parts[0], parts[1], {number, 0}};
    TAGFLOW_ASSIGN(Node * made,
                   add_for(graph_, like, name_after(graph_, like, "/joined"),
                           "ConcatV2", inputs,
                           {{"N", int64_t(2)},
                            {"T", DataType::kFloat},
                            {"Tidx", DataType::kInt32}},
                           {}));
    return Endpoint{made, 0};
  }

  // --- Single products -------------------------------------------------------

  // How weights are packed, or, if they are known, cut.
  struct Form {
    bool is_transposed = false;
    bool is_known = false;
    int64_t first = 0, count = 0;  // columns of the product; all if count is 0

    auto operator<=>(const Form&) const = default;
  };

  // The part of a product that a split returns.
  struct Part {
    Node* split = nullptr;
    int port = 0;
    int64_t first = 0, count = 0;  // columns
    NodeList controls;             // additional control inputs
  };

  // The only part of it that is read; nothing if there is none.
  std::optional<Part> find_part(const Node& product, int64_t columns) const {
    Node* const split = readers_.only_reading_node(product);
    if (split == nullptr || !is_pure(*split) ||
        !split->control_inputs().empty() || readers_.is_awaited(*split) ||
        !has_same_constraints(*split, product))
      return {};
    const bool is_even = split->op() == "Split";
    if (!is_even && split->op() != "SplitV") return {};
    if (!is_last_axis(split->inputs()[is_even ? 0 : 2], 2)) return {};
    std::optional<Part> part;
    int64_t first = 0;
    for (int port = 0; port < split->num_outputs(); ++port) {
      const PartialShape& shape = split->output_shape(port);
      if (!shape.has_rank() || shape.rank() != 2 || shape.dim(1) < 0) return {};
      if (readers_.is_read({split, port})) {
        if (part || shape.dim(1) == 0) return {};
        part = {.split = split,
                .port = port,
                .first = first,
                .count = shape.dim(1),
                .controls = {}};
      }
      first += shape.dim(1);
    }
    if (!part || first != columns) return {};
    for (const Endpoint& input : split->inputs())
      if (input.node != &product && !add_dependence(part->controls, input))
        return {};
    return part;
  }

  Status rewrite(Node* product) {
    const Endpoint weights = product->inputs()[1];
    PartialShape shape_of_weights = shape_outside(weights);
    Form form{.is_transposed = is_set(*product, "transpose_b"),
              .is_known = known_constant(weights) != nullptr};
    // A column of the product is a row of transposed weights.
    std::optional<Part> part;
    if (form.is_transposed) part = find_part(*product, shape_of_weights.dim(0));
    if (part) {
      form.first = part->first;
      form.count = part->count;
      shape_of_weights.set_dim(0, part->count);
    } else if (form.is_known) {
      return {};
    }
    TAGFLOW_ASSIGN(const Endpoint packed, pack({&weights, 1}, form));
    const Endpoint inputs[] = {product->inputs()[0], packed};
    AttrMap attrs = product->attrs();
    if (!form.is_known) {
      attrs = attrs_of(form, shape_of_weights);
      attrs["names"] = std::vector<std::string>{product->name()};
    }
    const PartialShape shape =
        part ? part->split->output_shape(part->port) : product->output_shape(0);
    NodeList controls(product->control_inputs());
    if (part) controls.add(part->controls);
    TAGFLOW_ASSIGN(
        Node * made,
        detour_.replace(product, form.is_known ? "MatMul" : "_PackedMatMul",
                        inputs, std::move(attrs), controls));
    graph_.set_output_shape(made, 0, shape);
    if (!part) return {};
    detour_.lead({part->split, part->port}, {made, 0});
    detour_.lead_control(part->split, {made});
    return {};
  }

  // Attributes of a plain product.
  static AttrMap attrs_of(const Form& form, const PartialShape& weights) {
    return {{"T", DataType::kFloat},
            {"transpose_b", form.is_transposed},
            {"weights", weights},
            {"N", int64_t(0)},
            {"S", int64_t(0)}};
  }

  // Packs the weights, on top of each other, outside of all loops that they
  // enter.
  Result<Endpoint> pack(std::span<const Endpoint> weights, const Form& form) {
    Key key;
    key.second = form;
    for (const Endpoint& part : weights)
      key.first.push_back({part.node->id(), part.port});
    if (const auto known = packed_.find(key); known != packed_.end())
      return known->second;
    Node* made = nullptr;
    if (is_loop_constant(*weights[0].node)) {
      Node& enter = *weights[0].node;
      std::vector<Endpoint> parts;
      for (const Endpoint& part : weights)
        parts.push_back(part.node->inputs()[0]);
      TAGFLOW_ASSIGN(const Endpoint outside, pack(parts, form));
      AttrMap attrs;
      // Without annotations of the value.
      for (const auto& [name, attr] : enter.attrs())
        if (!name.starts_with('_')) attrs.insert_or_assign(name, attr);
      attrs.insert_or_assign("T", outside.node->output_dtypes()[outside.port]);
      TAGFLOW_ASSIGN(
          made, add_for(graph_, enter, name_after(graph_, enter), enter.op(),
                        {&outside, 1}, std::move(attrs), {}));
    } else if (form.is_known) {
      TAGFLOW_ASSIGN(made, cut(weights[0], form));
    } else {
      Node& like = *weights[0].node;
      Endpoint whole = weights[0];
      if (weights.size() > 1) {
        TAGFLOW_ASSIGN(whole,
                       join(like, weights, form.is_transposed ? 1 : 0, &like));
      }
      TAGFLOW_ASSIGN(made,
                     add_for(graph_, like, name_after(graph_, like, "/packed"),
                             "_PackWeights", {&whole, 1},
                             {{"transposed", form.is_transposed},
                              {"first", form.first},
                              {"count", form.count}},
                             {}));
    }
    return packed_.emplace(key, Endpoint{made, 0}).first->second;
  }

  // A Const of some rows of known weights, in their frame.
  Result<Node*> cut(const Endpoint& weights, const Form& form) {
    const Tensor& whole = *known_constant(weights);
    const int64_t dims[] = {form.count, whole.dim(1)};
    TAGFLOW_ASSIGN(const Shape shape, Shape::make(dims));
    TAGFLOW_ASSIGN(Tensor rows, Tensor::allocate(DataType::kFloat, shape));
    std::copy_n(whole.data<float>() + form.first * whole.dim(1),
                rows.num_elements(), rows.mutable_data<float>());
    Node& like = *weights.node;
    NodeList waits;
    if (like.op() == "Const")
      waits.add(like.control_inputs());
    else
      waits.add(&like);
    return add_for(graph_, like, name_after(graph_, like, "/rows"), "Const", {},
                   {{"value", std::move(rows)}, {"dtype", DataType::kFloat}},
                   waits);
  }

  Graph& graph_;
  const Readers readers_;
  Detour detour_;
  // By nodes and ports of the weights, and the form.
  using Key = std::pair<std::vector<std::pair<NodeId, int>>, Form>;
  std::map<Key, Endpoint> packed_;
};

}  // namespace

Result<bool> pack_weights(Program& program, const PassContext&) {
  if (std::ranges::none_of(program.graph.nodes(), &Node::is_enter))
    return false;
  return Packing(program).run();
}

}  // namespace tagflow::graph
