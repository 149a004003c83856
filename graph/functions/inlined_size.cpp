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

std::vector<const FunctionDef*> InlinedSize::called(
    std::string_view op, const AttrMap& attrs) const {
  std::vector<const FunctionDef*> functions;
  for (const std::string_view name : inlined_functions(op, attrs))
    if (const FunctionDef* function = library_.find(name))
      functions.push_back(function);
  return functions;
}

uint64_t InlinedSize::of(std::string_view op, const AttrMap& attrs) {
  uint64_t nodes = 0;
  for (const FunctionDef* function : called(op, attrs))
    nodes = sum(nodes, of(*function));
  return nodes;
}

// Functions of a file may call one another in a chain of any length, so this
// does not call itself.
uint64_t InlinedSize::of(const FunctionDef& function) {
  struct Open {
    explicit Open(const FunctionDef& of)
        : function(&of),
          // One for each argument.
          nodes(of.nodes.size() + size_t(std::ranges::count_if(
                                      of.signature.inputs, is_one_tensor))) {}

    const FunctionDef* function;
    uint64_t nodes;
    size_t next_node = 0;
    std::vector<const FunctionDef*> calls = {};  // of the node before
    size_t next_call = 0;
  };
  std::vector<Open> open;
  if (known_.try_emplace(&function, 0).second) open.emplace_back(function);
  while (!open.empty()) {
    Open& top = open.back();
    if (top.next_call < top.calls.size()) {
      const FunctionDef& callee = *top.calls[top.next_call];
      const auto [known, is_new] = known_.try_emplace(&callee, 0);
      if (is_new) {
        open.emplace_back(callee);  // then this call is looked at again
      } else {
        top.nodes = sum(top.nodes, known->second);
        ++top.next_call;
      }
    } else if (top.next_node < top.function->nodes.size()) {
      const NodeDef& node = top.function->nodes[top.next_node++];
      top.calls = called(node.op, node.attrs);
      top.next_call = 0;
    } else {
      known_[top.function] = top.nodes;
      open.pop_back();
    }
  }
  return known_.at(&function);
}

Status check_inlined_size(const Graph& graph, const Limits& limits,
                          size_t* nodes) {
  if (graph.library().empty()) return {};
  InlinedSize size(graph.library());
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
