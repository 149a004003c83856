#include "apps/conform/needs.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "devices/kernel_registry.h"
#include "graph/functions/check.h"
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

// Collects over the nodes and, once each, the functions that they lead to.
class MissingOps {
 public:
  explicit MissingOps(const graph::FunctionLibrary& library)
      : library_(library) {}

  std::set<std::string> collect(const std::vector<NodeDef>& nodes) {
    add(nodes);
    while (!to_do_.empty()) {
      const graph::FunctionDef* function = to_do_.back();
      to_do_.pop_back();
      add(function->nodes);
    }
    return std::move(missing_);
  }

 private:
  void add(const std::vector<NodeDef>& nodes) {
    for (const NodeDef& node : nodes) {
      add_op(node.op);
      for (const std::string& name :
           graph::named_functions(node.op, node.attrs, library_)) {
        add_function(library_.find(name));
      }
    }
  }

  void add_op(const std::string& op) {
    if (is_performed_by_engine(op)) return;
    const auto* definition = graph::OpRegistry::global().find_or_null(op);
    if (definition != nullptr && has_cpu_kernel(op)) return;
    if (definition != nullptr || library_.find(op) == nullptr) {
      missing_.insert(op);
    }
  }

  void add_function(const graph::FunctionDef* function) {
    if (function != nullptr && seen_.insert(function).second) {
      to_do_.push_back(function);
    }
  }

  const graph::FunctionLibrary& library_;
  std::unordered_set<const graph::FunctionDef*> seen_;
  std::vector<const graph::FunctionDef*> to_do_;
  std::set<std::string> missing_;
};

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
  while (!to_do.empty()) {
    const size_t at = to_do.back();
    to_do.pop_back();
    for (const std::string& input : file.nodes[at].inputs) need(input);
  }

  std::vector<NodeDef> nodes;
  for (size_t i = 0; i < file.nodes.size(); ++i) {
    if (needed[i]) nodes.push_back(file.nodes[i]);
  }
  return nodes;
}

std::set<std::string> missing_ops(const std::vector<NodeDef>& nodes,
                                  const graph::FunctionLibrary& library) {
  return MissingOps(library).collect(nodes);
}

}  // namespace tagflow::apps
