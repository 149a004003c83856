// Sums of products over the iterations of a loop.
//
// Note [What is summed]
// If a loop adds a matrix product to a variable in each of its iterations, as
// the gradient of a loop does for weights, and nothing else reads that
// variable, the products need not be computed one by one:
//
//   value -> Enter -> Merge -> Switch -> AddN -> NextIteration
//                                 |        ^
//                                Exit    MatMul(a, b)
//
// is replaced by the same loop with a variant, which starts as
// _ProductSum(value). The body has _ProductSumAdd(variant, a, b) in place of
// AddN and MatMul, and a _ProductSumValue follows the Exit. The variant
// collects factors until their product is worth a pass over the whole sum: a b
// + c d is one product, of rows [a c] and columns [b d]. So sums are rounded in
// another order than one by one, which depends on shapes only. An AddN may have
// several products. The result is the same if the loop makes no iteration, or
// is dead. Like layers, this depends on the kernels of a device.
#include <algorithm>
#include <optional>

#include "graph/passes/passes.h"
#include "graph/passes/readers.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

class Sums {
 public:
  explicit Sums(Program& program)
      : graph_(program.graph), readers_(program), detour_(program) {}

  Result<bool> run() {
    std::vector<Node*> merges;
    for (Node* node : graph_.nodes())
      if (node->is_merge()) merges.push_back(node);
    for (Node* merge : merges)
      if (const auto sum = match(merge)) TAGFLOW_RETURN_IF_ERROR(rewrite(*sum));
    if (detour_.empty()) return false;
    return detour_.finish();
  }

 private:
  // The nodes of one variable.
  struct Sum {
    Node *enter = nullptr, *merge = nullptr, *choice = nullptr;
    Node *add = nullptr, *next = nullptr, *exit = nullptr;
    std::vector<Node*> products;
  };

  // The only reader of the output; null if there is none.
  Node* only_reader(const Node& node, int port = 0) const {
    const auto reader =
        readers_.only_reader(Endpoint{const_cast<Node*>(&node), port});
    return reader ? reader->node : nullptr;
  }

  std::optional<Sum> match(Node* merge) const {
    Sum sum;
    sum.merge = merge;
    const DataType dtype = merge->output_dtypes()[0];
    if ((dtype != DataType::kFloat && dtype != DataType::kDouble) ||
        merge->num_inputs() != 2 || !readers_.only_first_output(*merge))
      return {};
    sum.enter = merge->inputs()[0].node;
    sum.next = merge->inputs()[1].node;
    if (!sum.enter->is_enter() || !sum.next->is_next_iteration() ||
        only_reader(*sum.enter) != merge || only_reader(*sum.next) != merge)
      return {};
    sum.choice = only_reader(*merge);
    if (sum.choice == nullptr || !sum.choice->is_switch() ||
        sum.choice->inputs()[0].node != merge)
      return {};
    sum.add = only_reader(*sum.choice, 1);
    sum.exit = only_reader(*sum.choice, 0);
    if (sum.add == nullptr || sum.exit == nullptr || !sum.exit->is_exit() ||
        only_reader(*sum.add) != sum.next || !find_products(sum))
      return {};
    // Control inputs of these would have to be moved.
    for (const Node* node : {sum.merge, sum.choice, sum.next, sum.exit})
      if (!node->control_inputs().empty()) return {};
    return sum;
  }

  // Whether the sum is of the variable, once, and of products.
  bool find_products(Sum& sum) const {
    const Node& add = *sum.add;
    if (!adds_up(add)) return false;
    int variables = 0;
    for (const Endpoint& input : add.inputs()) {
      if (input == Endpoint{sum.choice, 1}) {
        ++variables;
        continue;
      }
      Node* const product = input.node;
      if (product->op() != "MatMul" || !is_pure(*product) ||
          only_reader(*product) != &add || !has_same_constraints(*product, add))
        return false;
      sum.products.push_back(product);
    }
    return variables == 1 && !sum.products.empty();
  }

  // Whether it adds tensors of one shape.
  static bool adds_up(const Node& node) {
    if (node.op() == "AddN") return true;
    if (node.op() != "AddV2" && node.op() != "Add") return false;
    return has_one_known_shape(node);
  }

  // The node's twin, of a variant.
  Result<Node*> twin(const Node& node, std::vector<Endpoint> inputs) {
    AttrMap attrs;
    // Without annotations of the value.
    for (const auto& [name, attr] : node.attrs())
      if (!name.starts_with('_')) attrs.insert_or_assign(name, attr);
    attrs.insert_or_assign("T", DataType::kVariant);
    return add_for(graph_, node, name_after(graph_, node), node.op(), inputs,
                   std::move(attrs), node.control_inputs());
  }

  Status rewrite(const Sum& sum) {
    const DataType dtype = sum.merge->output_dtypes()[0];
    const Endpoint value = sum.enter->inputs()[0];
    TAGFLOW_ASSIGN(
        Node * start,
        add_for(graph_, *sum.enter, name_after(graph_, *sum.enter, "/sum"),
                "_ProductSum", {&value, 1}, {{"T", dtype}}, {}));
    TAGFLOW_ASSIGN(Node * enter, twin(*sum.enter, {{start, 0}}));
    TAGFLOW_ASSIGN(Node * merge, twin(*sum.merge, {{enter, 0}, {nullptr, 0}}));
    TAGFLOW_ASSIGN(Node * choice,
                   twin(*sum.choice, {{merge, 0}, sum.choice->inputs()[1]}));
    Endpoint last{choice, 1};
    for (const Node* product : sum.products) {
      NodeList controls(product->control_inputs());
      controls.add(sum.add->control_inputs());
      const Endpoint inputs[] = {last, product->inputs()[0],
                                 product->inputs()[1]};
      TAGFLOW_ASSIGN(last.node,
                     add_for(graph_, *product, name_after(graph_, *product),
                             "_ProductSumAdd", inputs,
                             {{"T", dtype},
                              {"transpose_a", is_set(*product, "transpose_a")},
                              {"transpose_b", is_set(*product, "transpose_b")}},
                             controls));
      last.port = 0;
    }
    TAGFLOW_ASSIGN(Node * next, twin(*sum.next, {last}));
    TAGFLOW_RETURN_IF_ERROR(graph_.set_input(merge, 1, {next, 0}));
    TAGFLOW_ASSIGN(Node * exit, twin(*sum.exit, {{choice, 0}}));
    const Endpoint result{exit, 0};
    const PartialShape shape = sum.exit->output_shape(0);
    TAGFLOW_ASSIGN(Node * made,
                   detour_.replace(sum.exit, "_ProductSumValue", {&result, 1},
                                   {{"T", dtype}}, {}));
    graph_.set_output_shape(made, 0, shape);
    return {};
  }

  Graph& graph_;
  const Readers readers_;
  Detour detour_;
};

}  // namespace

Result<bool> sum_products(Program& program, const PassContext&) {
  if (std::ranges::none_of(program.graph.nodes(), &Node::is_exit)) return false;
  return Sums(program).run();
}

}  // namespace tagflow::graph
