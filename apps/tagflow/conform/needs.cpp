#include "apps/tagflow/conform/needs.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "devices/kernel_registry.h"
#include "graph/function_uses.h"
#include "graph/functions/lower.h"
#include "graph/op_registry.h"

namespace tagflow::apps {
namespace {

using graph::NodeDef;

// "node" of "node", "node:1" and "^node".
std::string_view node_of(std::string_view input) {
  if (input.starts_with('^')) input.remove_prefix(1);
  return input.substr(0, input.rfind(':'));
}

}  // namespace

bool is_performed_by_engine(std::string_view op) {
  static const std::unordered_set<std::string_view> ops = {
      "Switch",        "Merge",    "Enter",          "Exit",
      "NextIteration", "LoopCond", "ControlTrigger", "RefSwitch",
      "RefMerge",      "RefEnter", "RefExit",        "RefNextIteration",
      "_Send",         "_Recv",    "_HostSend",      "_HostRecv",
      "_SwitchN",      "_Call"};
  return ops.contains(op) || graph::is_functional_op(op);
}

bool has_cpu_kernel(std::string_view op) {
  return devices::KernelRegistry::global().has_op(op, "CPU");
}

std::vector<NodeDef> needed_nodes(const graph::GraphFile& file,
                                  const Case& the_case) {
  std::unordered_map<std::string_view, size_t> index;
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    index.emplace(file.nodes[i].name, i);
  }
  std::vector<bool> needed(file.nodes.size(), false);
  std::vector<size_t> to_do;
  auto need = [&](std::string_view port) {
    const auto it = index.find(node_of(port));
    if (it == index.end() || needed[it->second]) return;
    needed[it->second] = true;
    to_do.push_back(it->second);
  };
  for (const CaseRun& run : the_case.runs) {
    for (const std::string& name : run.fetches) need(name);
    for (const std::string& name : run.targets) need(name);
    for (const auto& [name, value] : run.feeds) need(name);
  }
  if (the_case.gradients) {
    for (const std::string& name : the_case.gradients->ys) need(name);
    for (const std::string& name : the_case.gradients->xs) need(name);
  }
  const auto need_inputs = [&] {
    while (!to_do.empty()) {
      const size_t at = to_do.back();
      to_do.pop_back();
      for (const std::string& input : file.nodes[at].inputs) need(input);
    }
  };
  need_inputs();
  if (the_case.gradients) {
    for (const std::string& name : initial_assignments(file.nodes)) {
      const NodeDef& assign = file.nodes[index.at(name)];
      if (needed[index.at(node_of(assign.inputs[0]))]) need(name);
    }
    need_inputs();
  }

  std::vector<NodeDef> nodes;
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    if (needed[i]) nodes.push_back(file.nodes[i]);
  }
  return nodes;
}

std::vector<std::string> initial_assignments(
    const std::vector<NodeDef>& nodes) {
  constexpr std::string_view kEnding = "/Assign";
  std::unordered_set<std::string_view> variables;
  for (const NodeDef& node : nodes)
    if (node.op == "VariableV2" || node.op == "Variable" ||
        node.op == "VarHandleOp")
      variables.insert(node.name);
  std::vector<std::string> assignments;
  for (const NodeDef& node : nodes) {
    if (node.op != "Assign" && node.op != "AssignVariableOp") continue;
    const std::string_view name = node.name;
    if (!name.ends_with(kEnding) || node.inputs.empty()) continue;
    const std::string_view variable =
        name.substr(0, name.size() - kEnding.size());
    if (variables.contains(variable) && node_of(node.inputs[0]) == variable)
      assignments.push_back(node.name);
  }
  return assignments;
}

std::set<std::string> missing_ops(const std::vector<NodeDef>& nodes,
                                  const graph::FunctionLibrary& library) {
  std::set<std::string> missing;
  const auto add = [&](const std::vector<NodeDef>& defs) {
    for (const NodeDef& node : defs) {
      if (is_performed_by_engine(node.op)) continue;
      const bool is_op =
          graph::OpRegistry::global().find_or_null(node.op) != nullptr;
      if (is_op ? !has_cpu_kernel(node.op) : library.find(node.op) == nullptr) {
        missing.insert(node.op);
      }
    }
  };
  add(nodes);
  for (const graph::FunctionDef* function :
       graph::reached_functions(nodes, library)) {
    add(function->nodes);
  }
  return missing;
}

}  // namespace tagflow::apps
