#include "actors/plan/handle_uses.h"

#include <unordered_map>
#include <utility>

#include "graph/functions/ports.h"

namespace tagflow::actors {
namespace {

using graph::FunctionDef;
using graph::NodeDef;

bool is_control(std::string_view input) { return input.starts_with('^'); }

int num_data_inputs(const NodeDef& node) {
  int count = 0;
  for (const std::string& input : node.inputs) count += !is_control(input);
  return count;
}

bool passes_on(std::string_view op) {
  static const std::set<std::string_view> kOps = {
      "Identity", "Switch", "Merge", "Enter", "Exit", "NextIteration"};
  return kOps.contains(op);
}

// An argument that is an input of a node.
struct Use {
  int input;
  uint32_t argument;
};

}  // namespace

// The uses of a function's handles, by node.
class HandleUses::Uses {
 public:
  explicit Uses(const FunctionDef& function) {
    for (const NodeDef& node : function.nodes)
      for (int i = 0; i < num_data_inputs(node); ++i)
        readers_.emplace(graph::split_tensor(node.inputs[size_t(i)]).name,
                         std::pair(&node, i));
    const auto& inputs = function.signature.inputs;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].dtype == DataType::kResource)
        follow(inputs[i].name, uint32_t(i));
  }

  const std::map<const NodeDef*, std::vector<Use>>& by_node() const {
    return by_node_;
  }

 private:
  void follow(std::string_view name, uint32_t argument) {
    std::vector<std::string_view> open = {name};
    std::set<std::string_view> known = {name};
    while (!open.empty()) {
      const auto [first, last] = readers_.equal_range(open.back());
      open.pop_back();
      for (auto it = first; it != last; ++it) {
        const auto [node, input] = it->second;
        by_node_[node].push_back({input, argument});
        if (passes_on(node->op) && known.insert(node->name).second)
          open.push_back(node->name);
      }
    }
  }

  std::unordered_multimap<std::string_view, std::pair<const NodeDef*, int>>
      readers_;
  std::map<const NodeDef*, std::vector<Use>> by_node_;
};

namespace {

void tie(HandleUses::Summary& summary, uint32_t a, uint32_t b) {
  if (summary.ties.find(a) == summary.ties.find(b)) return;
  summary.ties.unite(a, b);
  ++summary.num_ties;
}

size_t size_of(const HandleUses::Summary& summary) {
  size_t size = summary.num_ties;
  for (const auto& ops : summary.ops) size += ops.size();
  return size;
}

}  // namespace

// Repeats until there is no change: a caller may be analysed before its callee,
// and recursive functions have no order.
HandleUses::HandleUses(const graph::FunctionLibrary& library) {
  std::vector<std::pair<Uses, Summary*>> bodies;
  for (const FunctionDef* function : library.functions()) {
    Summary& summary =
        summaries_
            .try_emplace(function->name(), function->signature.inputs.size())
            .first->second;
    bodies.emplace_back(Uses(*function), &summary);
  }
  for (bool grows = true; grows;) {
    grows = false;
    for (const auto& [uses, summary] : bodies) grows |= grow(uses, *summary);
  }
}

std::vector<HandleUses::Callee> HandleUses::called(const graph::Node& node) {
  return called(node.op(), node.attrs(), node.num_inputs());
}

std::vector<HandleUses::Callee> HandleUses::called(const std::string& op,
                                                   const AttrMap& attrs,
                                                   int num_inputs) {
  std::vector<Callee> found;
  const auto add = [&](const std::string& name) {
    const auto it = summaries_.find(name);
    if (it != summaries_.end())
      found.push_back({&it->second, int(it->second.ops.size()) - num_inputs});
  };
  add(op);
  for (const FunctionRef* function : graph::functions_of(attrs))
    add(function->name);
  return found;
}

bool HandleUses::grow(const Uses& all, Summary& summary) {
  const size_t before = size_of(summary);
  for (const auto& [node, uses] : all.by_node()) {
    const auto callees = called(node->op, node->attrs, num_data_inputs(*node));
    if (callees.empty()) {
      for (const Use& use : uses) {
        summary.ops[use.argument].insert(node->op);
        tie(summary, uses[0].argument, use.argument);
      }
      continue;
    }
    for (const auto& [callee, first] : callees) {
      std::map<uint32_t, uint32_t> of_set;  // one of our arguments, by set
      for (const Use& use : uses) {
        const int at = first + use.input;
        if (at < 0 || size_t(at) >= callee->ops.size()) continue;
        // A copy, since the callee may be this function itself.
        const std::set<std::string> ops = callee->ops[size_t(at)];
        summary.ops[use.argument].insert(ops.begin(), ops.end());
        const uint32_t set = callee->ties.find(uint32_t(at));
        tie(summary, of_set.emplace(set, use.argument).first->second,
            use.argument);
      }
    }
  }
  return size_of(summary) > before;
}

}  // namespace tagflow::actors
