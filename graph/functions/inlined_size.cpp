#include "graph/functions/inlined_size.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "graph/functions/extended.h"
#include "graph/functions/lower.h"
#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

// The attributes of a functional op that name what it calls.
constexpr std::array<std::string_view, 6> kCalled = {
    "f", "then_branch", "else_branch", "branches", "cond", "body"};

uint64_t sum(uint64_t a, uint64_t b) {
  return std::min(a + b, InlinedSize::kMost);
}

// The functions that are inlined in place of such a node.
std::vector<std::string_view> inlined_functions(std::string_view op,
                                                const AttrMap& attrs) {
  if (OpRegistry::global().find_or_null(op) == nullptr) return {op};
  // What a SymbolicGradient calls is made when it is lowered.
  if (!is_functional_op(op) || op == "SymbolicGradient" ||
      has_own_frame(op, attrs))
    return {};
  std::vector<std::string_view> names;
  for (const std::string_view attr : kCalled) {
    const auto it = attrs.find(attr);
    if (it == attrs.end()) continue;
    if (const auto* one = it->second.get_if<FunctionRef>())
      names.push_back(one->name);
    if (const auto* all = it->second.get_if<std::vector<FunctionRef>>())
      for (const FunctionRef& one : *all) names.push_back(one.name);
  }
  return names;
}

bool is_one_tensor(const ArgDef& arg) {
  return arg.number_attr.empty() && arg.type_list_attr.empty();
}

}  // namespace

uint64_t InlinedSize::of(std::string_view op, const AttrMap& attrs) {
  uint64_t nodes = 0;
  for (const std::string_view name : inlined_functions(op, attrs))
    if (const FunctionDef* function = library_.find(name))
      nodes = sum(nodes, of(*function));
  return nodes;
}

uint64_t InlinedSize::of(const FunctionDef& function) {
  const auto [known, is_new] = known_.try_emplace(&function, 0);
  // Functions that nest deeper are refused when they are inlined.
  if (!is_new || depth_ > limits_.max_function_depth) return known->second;
  ++depth_;
  // A node for each argument.
  uint64_t nodes =
      function.nodes.size() +
      size_t(std::ranges::count_if(function.signature.inputs, is_one_tensor));
  for (const NodeDef& node : function.nodes)
    nodes = sum(nodes, of(node.op, node.attrs));
  --depth_;
  return known_[&function] = nodes;
}

Status check_inlined_size(const Graph& graph, const Limits& limits,
                          size_t* nodes) {
  if (graph.library().empty()) return {};
  InlinedSize size(graph.library(), limits);
  uint64_t all = graph.size();
  uint64_t most = 0;
  const Node* largest = nullptr;
  for (const Node* node : graph.nodes()) {
    const uint64_t more = size.of(node->op(), node->attrs());
    all = sum(all, more);
    if (more <= most) continue;
    most = more;
    largest = node;
  }
  if (largest == nullptr || all <= limits.max_nodes) return {};
  if (nodes != nullptr) *nodes = size_t(all);
  const auto names = inlined_functions(largest->op(), largest->attrs());
  return error(Code::kResourceExhausted,
               "[function] with its functions expanded the graph has more than "
               "{} nodes, the limit: {} \"{}\", which calls \"{}\", becomes {}",
               limits.max_nodes, largest->op(), largest->name(), names.front(),
               most);
}

}  // namespace tagflow::graph
