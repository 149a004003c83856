#include "graph/analysis/polls.h"

#include <algorithm>
#include <cstdint>

namespace tagflow::graph {
namespace {

// Whether it makes a handle or a reference, without other effects.
bool makes_handle(const Node& node) {
  return node.num_inputs() == 0 && node.num_outputs() > 0 &&
         std::ranges::all_of(node.output_dtypes(), [](DataType type) {
           return type == DataType::kResource || is_ref(type);
         });
}

}  // namespace

bool reads_variable(const Node& node) {
  return node.op() == "ReadVariableOp" || node.op() == "_Dereference";
}

bool reads_variables(const Node& node) {
  return reads_variable(node) || node.op() == "_ReadVariablesAhead";
}

bool may_see_others(const Node& node) {
  if (node.op().starts_with("_Call")) return true;
  return node.op_def().is_stateful && !reads_variables(node) &&
         !makes_handle(node) && !node.op().starts_with("TensorArray") &&
         !node.op().starts_with("Stack");
}

bool is_about_variable(const Node& node) {
  const auto& inputs = node.op_def().inputs;
  return !inputs.empty() &&
         (inputs[0].name == "resource" || inputs[0].name == "ref" ||
          inputs[0].name == "var");
}

bool may_end_wait(const Node& node) {
  return may_see_others(node) && node.op() != "VariableShape" &&
         !is_about_variable(node);
}

std::vector<bool> find_polls(const Graph& graph, const FrameMap& frames) {
  enum : uint8_t { kLiveness = 1, kValue = 2 };  // kinds of dependence
  struct Need {
    const Node* node;
    uint8_t what;
  };
  std::vector<bool> polls(graph.end_id());
  std::vector<uint8_t> known(graph.end_id());
  std::vector<Need> open;
  const auto need = [&](const Node* node, uint8_t what) {
    if (node == nullptr || (known[node->id()] & what) != 0) return;
    known[node->id()] |= what;
    open.push_back({node, what});
    if (what == kValue && reads_variable(*node) &&
        frames.of(*node) != FrameId::kRoot)
      polls[node->id()] = true;
  };
  for (const Node* node : graph.nodes())
    if (node->is_loop_cond()) need(node, kValue);
  while (!open.empty()) {
    const auto [node, what] = open.back();
    open.pop_back();
    // An effect may pass a value on by a control edge, for example a stack.
    const bool chooses = node->is_switch() || node->op_def().is_stateful ||
                         may_see_others(*node);
    for (const Endpoint& input : node->inputs()) {
      need(input.node, kLiveness);
      if (what == kValue || chooses) need(input.node, kValue);
    }
    for (const Node* source : node->control_inputs()) need(source, kLiveness);
  }
  return polls;
}

}  // namespace tagflow::graph
