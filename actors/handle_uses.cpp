#include "actors/handle_uses.h"

#include <set>
#include <utility>

namespace tagflow::actors {
namespace {

using graph::FunctionDef;
using graph::NodeDef;

bool is_control(std::string_view input) { return input.starts_with('^'); }

// Of "argument", "node:output:0".
std::string_view source_of(std::string_view input) {
  return input.substr(0, input.find(':'));
}

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

}  // namespace

HandleUses::Functions HandleUses::called(const std::string& op,
                                         const AttrMap& attrs) const {
  Functions found;
  const auto add = [&](const std::string& name) {
    if (const FunctionDef* function = library_.find(name))
      found.push_back(function);
  };
  add(op);
  for (const FunctionRef* function : graph::functions_of(attrs))
    add(function->name);
  return found;
}

const HandleUses::Uses& HandleUses::uses_in(const FunctionDef& function) {
  const auto [entry, is_new] = uses_.try_emplace(&function);
  if (!is_new) return entry->second;
  for (const NodeDef& node : function.nodes)
    for (int i = 0; i < num_data_inputs(node); ++i)
      entry->second.emplace(source_of(node.inputs[size_t(i)]), Use{&node, i});
  return entry->second;
}

void HandleUses::visit(const graph::Node& call, int input,
                       const std::function<void(const std::string&)>& use) {
  std::set<std::pair<const FunctionDef*, size_t>> seen;
  std::vector<std::pair<const FunctionDef*, size_t>> open;
  // What comes before the arguments, as a predicate, is the call's own.
  const auto enter = [&](const Functions& functions, int given, int at) {
    for (const FunctionDef* function : functions) {
      const int arg = at - (given - int(function->signature.inputs.size()));
      if (arg >= 0 && size_t(arg) < function->signature.inputs.size() &&
          seen.emplace(function, size_t(arg)).second)
        open.emplace_back(function, size_t(arg));
    }
  };
  enter(called(call.op(), call.attrs()), call.num_inputs(), input);
  while (!open.empty()) {
    const auto [function, arg] = open.back();
    open.pop_back();
    const Uses& uses = uses_in(*function);
    std::vector<std::string_view> names = {
        function->signature.inputs[arg].name};
    std::set<std::string_view> known(names.begin(), names.end());
    while (!names.empty()) {
      const auto [first, last] = uses.equal_range(names.back());
      names.pop_back();
      for (auto it = first; it != last; ++it) {
        const NodeDef& node = *it->second.node;
        const Functions functions = called(node.op, node.attrs);
        if (!functions.empty()) {
          enter(functions, num_data_inputs(node), it->second.input);
        } else {
          use(node.op);
          if (passes_on(node.op) && known.insert(node.name).second)
            names.push_back(node.name);
        }
      }
    }
  }
}

}  // namespace tagflow::actors
