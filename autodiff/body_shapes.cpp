#include "autodiff/body_shapes.h"

#include <optional>

#include "graph/analysis/loop_shapes.h"
#include "graph/analysis/topology.h"

namespace tagflow::autodiff {

using graph::Graph;
using graph::Node;

namespace {

// Each round may make results more exact; a recursion needs few.
constexpr int kMaxRounds = 4;
// A limit on the search for a branch without a call.
constexpr size_t kMostBranches = 1000;

class BodyShapes {
 public:
  BodyShapes(Graph& graph, const CallTable& table,
             std::vector<FunctionBody>& bodies)
      : graph_(graph), table_(table), bodies_(bodies) {}

  Status run() {
    args_.resize(bodies_.size());
    results_.resize(bodies_.size());
    calls_.resize(bodies_.size());
    for (size_t k = 0; k < bodies_.size(); ++k) {
      args_[k].resize(bodies_[k].args.size());
      calls_[k] = calls_in(bodies_[k].graph);
      TAGFLOW_ASSIGN(orders_.emplace_back(),
                     graph::topological_order(bodies_[k].graph));
    }
    const std::vector<Call> outside = calls_in(graph_);
    take_arguments(outside);
    for (bool is_new = true; is_new;) {
      TAGFLOW_RETURN_IF_ERROR(infer_all());
      is_new = false;
      for (const auto& calls : calls_) is_new |= take_arguments(calls);
    }
    set_results(graph_, outside);
    return {};
  }

 private:
  struct Call {
    Node* node;
    size_t body;
  };
  using Shapes = std::vector<PartialShape>;

  std::vector<Call> calls_in(const Graph& graph) const {
    std::vector<Call> calls;
    for (Node* node : graph.nodes())
      if (const CalledFunction* called = table_.find(*node))
        for (size_t k = 0; k < bodies_.size(); ++k)
          if (called == &table_.functions[k]) calls.push_back({node, k});
    return calls;
  }

  // Whether an argument's shape is less exact than before.
  bool take_arguments(const std::vector<Call>& calls) {
    bool is_new = false;
    for (const Call& call : calls) {
      const auto inputs = call.node->inputs();
      for (size_t i = 0; i < inputs.size(); ++i) {
        const PartialShape& shape =
            inputs[i].node->output_shape(inputs[i].port);
        std::optional<PartialShape>& known = args_[call.body][i];
        PartialShape both = known ? known->relax(shape) : shape;
        if (known && both == *known) continue;
        known = std::move(both);
        is_new = true;
      }
    }
    return is_new;
  }

  // From the arguments.
  Status infer_all() {
    TAGFLOW_RETURN_IF_ERROR(infer_without_results());
    if (!guess_results()) return {};
    // Induction: if each body gives the guessed shapes provided that the called
    // ones do, all do.
    for (size_t k = 0; k < bodies_.size(); ++k)
      TAGFLOW_RETURN_IF_ERROR(infer(k));
    for (size_t k = 0; k < bodies_.size(); ++k)
      for (size_t j = 0; j < results_[k].size(); ++j)
        if (results_[k][j].relax(result_shape(k, j)) != results_[k][j])
          return infer_without_results();
    return {};
  }

  // Starts with unknown results.
  Status infer_without_results() {
    for (size_t k = 0; k < bodies_.size(); ++k)
      results_[k].assign(bodies_[k].results.size(), PartialShape());
    for (int round = 0; round < kMaxRounds; ++round) {
      bool is_new = false;
      for (size_t k = 0; k < bodies_.size(); ++k) {
        TAGFLOW_RETURN_IF_ERROR(infer(k));
        for (size_t j = 0; j < results_[k].size(); ++j) {
          if (result_shape(k, j) == results_[k][j]) continue;
          results_[k][j] = result_shape(k, j);
          is_new = true;
        }
      }
      if (!is_new) break;
    }
    return {};
  }

  const PartialShape& result_shape(size_t k, size_t j) const {
    const graph::Endpoint& result = bodies_[k].results[j];
    return result.node->output_shape(result.port);
  }

  // Guesses the results' shapes from a branch that ends the recursion without a
  // call. Returns whether there was anything to guess.
  bool guess_results() {
    bool is_new = false;
    for (size_t k = 0; k < bodies_.size(); ++k)
      for (size_t j = 0; j < results_[k].size(); ++j) {
        if (results_[k][j].has_rank()) continue;
        results_[k][j] = known_branch(bodies_[k].results[j]);
        is_new = is_new || results_[k][j].has_rank();
      }
    return is_new;
  }

  static PartialShape known_branch(const graph::Endpoint& result) {
    std::vector<graph::Endpoint> open{result};
    for (size_t i = 0; i < open.size() && i < kMostBranches; ++i) {
      const Node& node = *open[i].node;
      const PartialShape& shape = node.output_shape(open[i].port);
      if (shape.has_rank()) return shape;
      if (node.is_merge() || node.is_identity())
        open.insert(open.end(), node.inputs().begin(), node.inputs().end());
    }
    return {};
  }

  Status infer(size_t k) {
    Graph& graph = bodies_[k].graph;
    for (Node* node : orders_[k])
      for (size_t i = 0; i < node->inputs().size(); ++i)
        if (graph::is_back_edge(*node, i))
          graph.set_output_shape(node->inputs()[i].node, 0, PartialShape());
    for (size_t i = 0; i < args_[k].size(); ++i)
      graph.set_attr(bodies_[k].args[i].node, "shape",
                     args_[k][i].value_or(PartialShape()));
    set_results(graph, calls_[k]);
    // If shapes contradict each other, a run would fail: nothing is
    // inferred.
    for (Node* node : orders_[k])
      if (table_.find(*node) == nullptr && !Graph::infer_shapes(*node).ok())
        for (int port = 0; port < node->num_outputs(); ++port)
          graph.set_output_shape(node, port, PartialShape());
    return graph::infer_loop_shapes(graph);
  }

  void set_results(Graph& graph, const std::vector<Call>& calls) const {
    for (const Call& call : calls)
      for (size_t j = 0; j < results_[call.body].size(); ++j)
        graph.set_output_shape(call.node, int(j), results_[call.body][j]);
  }

  Graph& graph_;
  const CallTable& table_;
  std::vector<FunctionBody>& bodies_;
  // By body: the known shapes, and its calls and nodes. An argument has no
  // shape until a call gives it one.
  std::vector<std::vector<std::optional<PartialShape>>> args_;
  std::vector<Shapes> results_;
  std::vector<std::vector<Call>> calls_;
  std::vector<std::vector<Node*>> orders_;
};

}  // namespace

Status infer_body_shapes(Graph& graph, const CallTable& table,
                         std::vector<FunctionBody>& bodies) {
  return BodyShapes(graph, table, bodies).run();
}

}  // namespace tagflow::autodiff
