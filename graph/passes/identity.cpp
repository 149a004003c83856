// Removes identities, and ops that do not change a tensor of known shape.
//
// An Identity with another device than its source moves the tensor there once
// for all readers: it stays. A node that waits for a constant, or a NoOp, waits
// for the control inputs of that instead: the result of a frozen graph would
// wait for all weights, and passes would have to consider this. If an Identity
// has control inputs, its readers get them themselves.
#include <algorithm>
#include <array>

#include "graph/analysis/topology.h"
#include "graph/known_value.h"
#include "graph/node_set.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

class Identities {
 public:
  explicit Identities(Program& program)
      : graph_(program.graph), detour_(program) {}

  Result<bool> run() {
    TAGFLOW_ASSIGN(const auto order, topological_order(graph_));
    for (const Node* node : graph_.nodes())
      if (node->is_merge())
        for (const Endpoint& input : node->inputs())
          merged_.insert(*input.node);
    for (Node* node : order) {
      shorten_waits(node);
      TAGFLOW_RETURN_IF_ERROR(read_past_waits(node));
      if (changes_nothing(*node)) TAGFLOW_RETURN_IF_ERROR(make_identity(node));
      if (is_plain_identity(*node)) bypass(node);
      if (node->op() == "IdentityN" && node->num_inputs() > 1)
        bypass_each(node);
    }
    if (detour_.empty() && !shortened_) return false;
    return detour_.finish();
  }

 private:
  // In topological order, so that a chain is removed at once.
  void shorten_waits(Node* node) {
    NodeList waits;
    for (Node* control : node->control_inputs()) {
      const auto led = detour_.control_ends(*control);
      for (Node* end : led.empty() ? std::span<Node* const>(&control, 1) : led)
        if (only_waits(*end)) {
          waits.add(end->control_inputs());
        } else {
          waits.add(end);
        }
    }
    if (std::ranges::equal(waits, node->control_inputs())) return;
    graph_.set_control_inputs(node, waits);
    shortened_ = true;
  }

  // At most one other node, so that the number of edges does not grow.
  static bool only_waits(const Node& node) {
    return (node.is_const() || node.op() == "NoOp") &&
           node.control_inputs().size() <= 1;
  }

  // Reads past an Identity with control inputs, and takes over these: then an
  // op can be fused with its neighbours.
  Status read_past_waits(Node* node) {
    if (!is_pure(*node) || node->is_identity()) return {};
    NodeList waits(node->control_inputs());
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const Endpoint input = detour_.end(node->inputs()[i]);
      const Node& between = *input.node;
      if (!between.is_identity() || between.control_inputs().empty() ||
          reads_reference(between))
        continue;
      NodeList more(waits);
      more.add(between.control_inputs());
      const Endpoint source = detour_.end(between.inputs()[0]);
      if (more.size() > kMaxControls || !may_go(between, source)) continue;
      waits = std::move(more);
      TAGFLOW_RETURN_IF_ERROR(graph_.set_input(node, int(i), source));
      shortened_ = true;
    }
    if (waits.size() != node->control_inputs().size())
      graph_.set_control_inputs(node, waits);
    return {};
  }

  // Whether the Identity is not needed for its device.
  static bool may_go(const Node& identity, const Endpoint& source) {
    return is_unconstrained(identity) ||
           has_same_constraints(identity, *source.node);
  }

  void bypass(Node* node) {
    const Endpoint source = detour_.end(node->inputs()[0]);
    if (!may_go(*node, source)) return;
    // The expected inputs of a Merge in an iteration depend on their sources.
    if (merged_.contains(*node) &&
        (source.node->is_enter() || source.node->is_next_iteration()))
      return;
    detour_.lead({node, 0}, source);
    if (control_tells_deadness(source))
      detour_.lead_control(node, {source.node});
  }

  // An IdentityN of several tensors is dead if one of them is. So the reader of
  // an output may read the input itself if that input is live only when all
  // others are: Keras' activations pass on the tensors for their gradients in
  // this way.
  void bypass_each(Node* node) {
    if (!node->control_inputs().empty() || !is_unconstrained(*node) ||
        reads_reference(*node) || merged_.contains(*node))
      return;
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint source = detour_.end(node->inputs()[size_t(i)]);
      if (std::ranges::all_of(node->inputs(), [&](const Endpoint& other) {
            return comes_with(detour_.end(other), source);
          }))
        detour_.lead({node, i}, source);
    }
  }

  // Whether a tensor is live whenever another one of its iteration is: it is a
  // constant, or the other one is computed from it.
  bool comes_with(const Endpoint& tensor, const Endpoint& other) const {
    constexpr size_t kMostVisits = 32;
    if (tensor.node->is_const() && tensor.node->control_inputs().empty())
      return true;
    std::vector<Endpoint> seen = {other};
    for (size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == tensor) return true;
      const Node& node = *seen[i].node;
      if (!is_pure(node) || seen.size() > kMostVisits) continue;
      for (const Endpoint& input : node.inputs())
        seen.push_back(detour_.end(input));
    }
    return false;
  }

  // An Identity of its first input, with the others as control inputs.
  Status make_identity(Node* node) {
    NodeList controls(node->control_inputs());
    for (size_t i = 1; i < node->inputs().size(); ++i)
      if (!add_dependence(controls, detour_.end(node->inputs()[i]))) return {};
    if (controls.empty()) {
      bypass(node);
      return {};
    }
    const Endpoint source = detour_.end(node->inputs()[0]);
    return detour_
        .replace(node, "Identity", {&source, 1},
                 {{"T", node->output_dtypes()[0]}}, controls)
        .status();
  }

  // Whether output 0, the only one, equals input 0.
  static bool changes_nothing(const Node& node) {
    if (!is_pure(node) || node.num_outputs() != 1 || node.num_inputs() == 0 ||
        node.input_dtypes()[0] != node.output_dtypes()[0])
      return false;
    const std::string& op = node.op();
    if (op == "Cast") return true;
    if (op == "AddN") return node.num_inputs() == 1;
    if (op == "Transpose") return keeps_order(node);
    if (is_reduction(op)) return has_no_elements(node.inputs()[1]);
    if (op != "Reshape" && op != "Squeeze" && op != "BroadcastTo" &&
        op != "EnsureShape")
      return false;
    const Endpoint& from = node.inputs()[0];
    const PartialShape& shape = node.output_shape(0);
    return shape.fully_known() && shape == from.node->output_shape(from.port);
  }

  // A reduction that returns a single element unchanged.
  static bool is_reduction(const std::string& op) {
    constexpr std::array kReductions = {"Sum", "Mean", "Prod", "Max",
                                        "Min", "All",  "Any"};
    return std::ranges::find(kReductions, op) != kReductions.end();
  }

  static bool has_no_elements(const Endpoint& axes) {
    const Tensor* value = known_constant(axes);
    return value != nullptr && value->num_elements() == 0;
  }

  static bool keeps_order(const Node& node) {
    const Endpoint& from = node.inputs()[0];
    const PartialShape& shape = from.node->output_shape(from.port);
    const Tensor* order = known_constant(node.inputs()[1]);
    if (order == nullptr || order->rank() != 1 || !shape.has_rank() ||
        order->num_elements() != shape.rank())
      return false;
    for (int64_t i = 0; i < order->num_elements(); ++i) {
      const int64_t at = order->dtype() == DataType::kInt32
                             ? order->data<int32_t>()[i]
                             : order->data<int64_t>()[i];
      if (at != i) return false;
    }
    return true;
  }

  Graph& graph_;
  Detour detour_;
  NodeSet merged_;  // sources of Merges
  bool shortened_ = false;
};

}  // namespace

Result<bool> remove_identities(Program& program, const PassContext&) {
  return Identities(program).run();
}

}  // namespace tagflow::graph
