#include "graph/analysis/loop_shapes.h"

#include <optional>
#include <utility>
#include <vector>

#include "graph/analysis/list_elements.h"
#include "graph/analysis/topology.h"
#include "graph/budget.h"

namespace tagflow::graph {
namespace {

// Few loops need more. From then on, each round gives up one variable, or one
// reader of a list, that still changes; the last round gives up all, since
// there may be thousands of successive changes.
constexpr int kMaxRounds = 8;
constexpr int kLastRound = 64;

class LoopShapes {
 public:
  LoopShapes(Graph& graph, const std::vector<Node*>& order,
             std::span<Node* const> changed)
      : graph_(graph) {
    std::vector<bool> depends(graph.end_id());
    for (const Node* node : changed) depends[node->id()] = true;
    for (Node* node : order) {
      size_t back_edge = 0;
      const bool is_variable = has_back_edge(*node, back_edge);
      bool is_known = true;
      for (const PartialShape& shape : shapes_of(*node))
        is_known = is_known && shape.fully_known();
      std::optional<ListReading> reading;
      std::optional<ListElements> elements;
      if (!is_known) reading = list_reading(*node);
      if (reading)
        elements = find_list_elements(node->inputs()[size_t(reading->list)]);
      if ((is_variable && !is_known) || elements) depends[node->id()] = true;
      for (const Endpoint& input : node->inputs())
        if (!is_back_edge(*node, size_t(&input - node->inputs().data())) &&
            depends[input.node->id()])
          depends[node->id()] = true;
      if (!depends[node->id()]) continue;
      Dependent& one = nodes_.emplace_back();
      one.node = node;
      one.facts = shapes_of(*node);
      if (is_variable) one.back_edge = int(back_edge);
      if (!elements) continue;
      one.reading = reading;
      one.elements = std::move(*elements);
    }
  }

  Status run(Budget* budget) {
    begin_stage(budget, "shapes were inferred");
    for (int round = 0;; ++round) {
      for (Dependent& one : nodes_) {
        TAGFLOW_RETURN_IF_ERROR(check_budget(budget));
        infer(one, round == 0);
      }
      bool is_settled = true;
      for (Dependent& one : nodes_) {
        if (one.is_given_up || agrees(one)) continue;
        is_settled = false;
        one.is_given_up = round >= kMaxRounds;
        break;
      }
      if (is_settled) return {};
      if (round >= kLastRound)
        for (Dependent& one : nodes_) one.is_given_up = true;
    }
  }

 private:
  // A loop variable, a reader of a list, or a node that depends on one.
  struct Dependent {
    Node* node = nullptr;
    std::vector<PartialShape> facts;     // by port; hold unconditionally
    PartialShape assumed;                // of a variable
    int back_edge = -1;                  // its input number; otherwise -1
    std::optional<ListReading> reading;  // of a list's reader, as the rest
    ListElements elements;
    std::optional<PartialShape> element;  // the assumed shape
    bool is_given_up = false;             // only the facts are used
  };

  static std::vector<PartialShape> shapes_of(const Node& node) {
    std::vector<PartialShape> shapes;
    for (int i = 0; i < node.num_outputs(); ++i)
      shapes.push_back(node.output_shape(i));
    return shapes;
  }

  static bool has_back_edge(const Node& node, size_t& index) {
    // The shape of a variable behind a reference may change.
    if (!node.is_merge() || is_ref(node.output_dtypes()[0])) return false;
    for (index = 0; index < node.inputs().size(); ++index)
      if (is_back_edge(node, index)) return true;
    return false;
  }

  // The inferred shape, combined with the unconditional facts.
  static PartialShape with_fact(const PartialShape& shape,
                                const PartialShape& fact) {
    auto both = shape.merge(fact);
    return both.ok() ? std::move(both).value() : fact;
  }

  static PartialShape back_shape(const Dependent& variable) {
    const Endpoint& back = variable.node->inputs()[size_t(variable.back_edge)];
    return with_fact(back.node->output_shape(back.port), variable.facts[0]);
  }

  // Whether the back edge, or the list, has the assumed shape.
  static bool agrees(const Dependent& one) {
    if (one.reading)
      return one.element ==
             element_shape(*one.node, *one.reading, one.elements);
    if (one.back_edge < 0) return true;
    const PartialShape& shape = one.node->output_shape(0);
    return shape.relax(back_shape(one)) == shape;
  }

  void infer(Dependent& one, bool is_first) {
    if (one.back_edge >= 0) {
      assume(one, is_first);
      return;
    }
    // If the shapes contradict, a run would fail: there is no conclusion.
    const bool fits = Graph::infer_shapes(*one.node).ok();
    if (fits && one.reading) look_at_list(one);
    for (size_t i = 0; i < one.facts.size(); ++i) {
      const PartialShape& fact = one.facts[i];
      graph_.set_output_shape(
          one.node, int(i),
          fits ? with_fact(one.node->output_shape(int(i)), fact) : fact);
    }
  }

  void look_at_list(Dependent& one) {
    one.element.reset();
    if (one.is_given_up) return;
    one.element = element_shape(*one.node, *one.reading, one.elements);
    if (!one.element) return;
    const int output = one.reading->output;
    graph_.set_output_shape(
        one.node, output,
        with_fact(one.node->output_shape(output), one.reading->is_stacked
                                                      ? stack_of(*one.element)
                                                      : *one.element));
  }

  static PartialShape stack_of(const PartialShape& element) {
    if (!element.has_rank() || element.rank() == kMaxRank) return {};
    PartialShape stack = PartialShape::of_rank(element.rank() + 1);
    for (int i = 0; i < element.rank(); ++i)
      stack.set_dim(i + 1, element.dim(i));
    return stack;
  }

  void assume(Dependent& variable, bool is_first) {
    if (variable.is_given_up) {
      variable.assumed = PartialShape();
    } else if (is_first) {
      variable.assumed = entering(variable);
    } else {
      variable.assumed = variable.assumed.relax(entering(variable))
                             .relax(back_shape(variable));
    }
    graph_.set_output_shape(variable.node, 0,
                            with_fact(variable.assumed, variable.facts[0]));
  }

  // The common shape of the inputs from before the loop.
  static PartialShape entering(const Dependent& variable) {
    const auto inputs = variable.node->inputs();
    PartialShape shape;
    bool is_first = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (is_back_edge(*variable.node, i)) continue;
      const PartialShape& input = inputs[i].node->output_shape(inputs[i].port);
      shape = is_first ? input : shape.relax(input);
      is_first = false;
    }
    return shape;
  }

  Graph& graph_;
  std::vector<Dependent> nodes_;  // in topological order
};

}  // namespace

Status infer_loop_shapes(Graph& graph, std::span<Node* const> changed,
                         Budget* budget) {
  TAGFLOW_ASSIGN(const auto order, topological_order(graph));
  return LoopShapes(graph, order, changed).run(budget);
}

}  // namespace tagflow::graph
