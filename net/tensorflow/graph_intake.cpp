#include "net/tensorflow/graph_intake.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "devices/state/accumulator.h"
#include "devices/state/barrier.h"
#include "devices/state/queue.h"
#include "devices/state/state_kind.h"
#include "devices/state/table.h"
#include "devices/state/variable.h"
#include "graph/file/graph_proto.h"
#include "graph/op_registry.h"
#include "graph/proto/graph.pb.h"
#include "net/tensorflow/client_errors.h"

namespace tagflow::net {
namespace {

// How many nodes of an extension may be tried alone. Each one costs a copy of
// the session's graph.
constexpr int kMostTries = 64;

// Of a node's input, or of a fetch: "^name", "name:port".
std::string_view name_of(std::string_view input) {
  if (input.starts_with('^')) input.remove_prefix(1);
  return input.substr(0, input.rfind(':'));
}

uint64_t constant_bytes(const std::vector<graph::NodeDef>& nodes) {
  uint64_t bytes = 0;
  for (const graph::NodeDef& node : nodes)
    for (const auto& [name, value] : node.attrs)
      if (const Tensor* tensor = value.get_if<Tensor>(); tensor != nullptr)
        bytes += tensor->bytes();
  return bytes;
}

// Whether the node makes what other sessions do not share.
bool makes_private_state(const graph::NodeDef& node) {
  const auto is_set = [&](const char* name) {
    const auto at = node.attrs.find(name);
    if (at == node.attrs.end()) return false;
    const auto* text = at->second.get_if<std::string>();
    const bool* flag = at->second.get_if<bool>();
    return (text != nullptr && !text->empty()) || (flag != nullptr && *flag);
  };
  static constexpr std::string_view kPrivate[] = {
      devices::Queue::kKind, devices::Barrier::kKind,
      devices::Table::kKind, devices::ConditionalAccumulator::kKind,
      devices::kReaderKind,  devices::kIteratorKind};
  return std::ranges::count(kPrivate, devices::kind_of(node.op)) > 0 &&
         !node.op.starts_with("Anonymous") && !is_set("container") &&
         !is_set("shared_name") && !is_set("use_node_name_sharing");
}

}  // namespace

void GraphIntake::adapt(graph::NodeDef& node) const {
  // What another session has left under its name is of no use to this one.
  if (node.op == "VarHandleOp" || node.op == "VariableV2" ||
      node.op == "Variable")
    node.attrs.insert_or_assign(devices::kReplacesVariable, true);
  if (makes_private_state(node))
    node.attrs.insert_or_assign("container", container_);
}

Status GraphIntake::add(const tensorflow::GraphDef& proto, uint64_t* bytes) {
  Aside aside;
  std::vector<graph::NodeDef> nodes;
  graph::FunctionLibrary library;
  Status status;
  if (aside_.empty()) {
    auto file = graph::graph_from_proto(proto, {});
    status = std::move(file).status();
    if (status.ok()) {
      nodes = std::move(file->nodes);
      library = std::move(file->library);
    }
  }
  if (!aside_.empty() || status.code() == Code::kUnimplemented)
    status = sort_out(proto, nodes, library, aside);
  TAGFLOW_RETURN_IF_ERROR(std::move(status));
  *bytes = constant_bytes(nodes);
  for (graph::NodeDef& node : nodes) adapt(node);
  TAGFLOW_ASSIGN(const graph::Graph functions, adapted(library));
  int tries = 0;
  while (!(status = session_.extend(nodes, functions)).ok()) {
    const std::string name(node_in(status.message()));
    const auto at = std::ranges::find(nodes, name, &graph::NodeDef::name);
    if (at == nodes.end()) return status;
    if (status.code() != Code::kUnimplemented) {
      if (status.code() != Code::kInvalidArgument) return status;
      if (++tries > kMostTries)
        return std::move(status).with_prefix(fmt::format(
            "more than {} nodes cannot be made; the last: ", kMostTries));
      if (!fits_but_for_shapes(*at, nodes, functions)) return status;
    }
    aside.emplace(name, std::move(status));
    nodes.erase(at);
    set_unknown_ops_aside(nodes, library, aside);
    spread(nodes, aside);
  }
  aside_.merge(std::move(aside));
  return {};
}

Result<graph::Graph> GraphIntake::adapted(
    const graph::FunctionLibrary& library) const {
  graph::Graph functions;
  for (const graph::FunctionDef* function : library.in_order_added()) {
    graph::FunctionDef copy = *function;
    for (graph::NodeDef& node : copy.nodes) adapt(node);
    TAGFLOW_RETURN_IF_ERROR(functions.library().add(std::move(copy)));
  }
  for (const auto& [function, gradient] : library.gradients())
    TAGFLOW_RETURN_IF_ERROR(
        functions.library().add_gradient(function, gradient));
  return functions;
}

Status GraphIntake::sort_out(const tensorflow::GraphDef& proto,
                             std::vector<graph::NodeDef>& nodes,
                             graph::FunctionLibrary& library,
                             Aside& aside) const {
  const graph::Limits limits;
  graph::LimitsLeft left(limits);
  const auto is_missing = [](const Status& status) {
    return status.code() == Code::kUnimplemented;
  };
  for (const tensorflow::NodeDef& each : proto.node()) {
    auto node = graph::node_from_proto(each, left);
    if (node.ok()) {
      nodes.push_back(*std::move(node));
    } else if (is_missing(node.status())) {
      aside.emplace(each.name(), node.status());
    } else {
      return node.status();
    }
  }
  for (const tensorflow::FunctionDef& each : proto.library().function()) {
    auto function = graph::function_from_proto(each, left);
    if (function.ok()) {
      TAGFLOW_RETURN_IF_ERROR(library.add(*std::move(function)));
    } else if (!is_missing(function.status())) {
      return function.status();
    }
  }
  for (const tensorflow::GradientDef& each : proto.library().gradient())
    TAGFLOW_RETURN_IF_ERROR(
        library.add_gradient(each.function_name(), each.gradient_func()));
  spread(nodes, aside);
  return {};
}

bool GraphIntake::fits_but_for_shapes(const graph::NodeDef& node,
                                      const std::vector<graph::NodeDef>& nodes,
                                      const graph::Graph& functions) const {
  std::unordered_map<std::string_view, const graph::NodeDef*> by_name;
  for (const graph::NodeDef& each : nodes) by_name.emplace(each.name, &each);
  std::vector<const graph::NodeDef*> todo{&node};
  std::vector<graph::NodeDef> before;  // what it is computed from
  while (!todo.empty()) {
    const graph::NodeDef& next = *todo.back();
    todo.pop_back();
    for (const std::string& input : next.inputs) {
      const auto found = by_name.find(name_of(input));
      if (found == by_name.end()) continue;
      if (found->second == &node) return false;
      todo.push_back(found->second);
      before.push_back(*found->second);
      by_name.erase(found);
    }
  }
  graph::Graph scratch = session_.graph().clone();
  if (!scratch.extend(functions).ok() || !scratch.extend(before).ok())
    return false;
  std::vector<graph::NodeDef> alone;
  graph::NodeDef copy = node;
  for (std::string& input : copy.inputs) {
    if (input.starts_with('^')) continue;
    const auto source = scratch.endpoint(input);
    if (!source.ok()) return false;
    const DataType type = source->node->output_dtypes()[size_t(source->port)];
    if (is_ref(type)) continue;
    input = scratch.unique_name(fmt::format("input_{}", alone.size()));
    alone.push_back({input, "Placeholder", {}, {}, {{"dtype", type}}});
  }
  alone.push_back(std::move(copy));
  return scratch.extend(alone).ok();
}

void GraphIntake::set_unknown_ops_aside(
    const std::vector<graph::NodeDef>& nodes,
    const graph::FunctionLibrary& library, Aside& aside) const {
  const auto& ops = graph::OpRegistry::global();
  std::map<std::string_view, Status> reasons;  // why there is no such op
  for (const graph::NodeDef& node : nodes) {
    if (ops.find_or_null(node.op) != nullptr ||
        library.find(node.op) != nullptr ||
        session_.graph().library().find(node.op) != nullptr)
      continue;
    const auto [reason, is_new] = reasons.try_emplace(node.op);
    if (is_new) reason->second = ops.find(node.op).status();
    aside.emplace(node.name,
                  Status(reason->second)
                      .with_prefix(fmt::format("node \"{}\": ", node.name)));
  }
}

void GraphIntake::spread(std::vector<graph::NodeDef>& nodes,
                         Aside& aside) const {
  std::unordered_map<std::string_view, std::vector<size_t>> readers;
  std::vector<bool> is_aside(nodes.size());
  std::vector<size_t> todo;  // nodes whose readers are to be set aside
  const auto set_aside = [&](size_t i, const Status& reason) {
    if (is_aside[i]) return;
    is_aside[i] = true;
    aside.emplace(nodes[i].name, Status(reason));
    todo.push_back(i);
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const auto at = aside.find(nodes[i].name); at != aside.end())
      set_aside(i, at->second);
    for (const std::string& input : nodes[i].inputs) {
      readers[name_of(input)].push_back(i);
      if (const Status* reason = find(aside, input); reason != nullptr)
        set_aside(i, *reason);
    }
  }
  while (!todo.empty()) {
    const std::string& name = nodes[todo.back()].name;
    todo.pop_back();
    for (const size_t reader : readers[name])
      set_aside(reader, aside.find(name)->second);
  }
  size_t next = 0;
  std::erase_if(nodes, [&](const graph::NodeDef&) { return is_aside[next++]; });
}

const Status* GraphIntake::find(const Aside& aside,
                                std::string_view input) const {
  const std::string_view name = name_of(input);
  if (const auto at = aside.find(name); at != aside.end()) return &at->second;
  const auto at = aside_.find(name);
  return at == aside_.end() ? nullptr : &at->second;
}

Status GraphIntake::reason(std::string_view name) const {
  const Status* status = find({}, name);
  return status == nullptr ? Status() : *status;
}

}  // namespace tagflow::net
