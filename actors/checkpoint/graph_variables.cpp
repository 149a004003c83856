#include "actors/checkpoint/graph_variables.h"

#include <algorithm>
#include <map>
#include <utility>

#include "devices/state/resource_op.h"
#include "devices/state/state_kind.h"
#include "devices/state/variable.h"
#include "graph/function.h"

namespace tagflow::actors {
namespace {

using ByName = std::map<std::string, GraphVariable, std::less<>>;

template <class T>
T attr_or(const AttrMap& attrs, std::string_view name) {
  const auto it = attrs.find(name);
  const T* value = it == attrs.end() ? nullptr : it->second.get_if<T>();
  return value == nullptr ? T() : *value;
}

std::string describe_container(const std::string& name) {
  return name.empty() ? "no container" : fmt::format("container \"{}\"", name);
}

Status add_variable(const graph::NodeDef& node, ByName& variables) {
  const devices::ResourceKey key = devices::resource_key(node);
  if (key.name == devices::kAnonymousName) return {};
  GraphVariable variable;
  variable.container = key.container;
  variable.name = key.path();
  variable.maker = node;
  variable.maker.inputs.clear();
  variable.maker.attrs.insert_or_assign("shared_name", key.name);
  variable.dtype = attr_or<DataType>(node.attrs, "dtype");
  variable.shape = attr_or<PartialShape>(node.attrs, "shape");
  // If the type depends on the call, the calls define the variable.
  if (variable.dtype == DataType::kInvalid) return {};
  const auto [it, is_new] = variables.try_emplace(variable.name, variable);
  const GraphVariable& known = it->second;
  if (known.is_reference() != variable.is_reference())
    return invalid_argument(
        "[snapshot] the graph has two variables \"{}\": a {} and a {}",
        known.name, known.maker.op, node.op);
  if (known.container != variable.container)
    return invalid_argument(
        "[snapshot] the graph has two variables \"{}\": one of {}, and one of "
        "{}",
        known.name, describe_container(known.container),
        describe_container(variable.container));
  return {};
}

}  // namespace

bool GraphVariable::is_reference() const {
  return devices::kind_of(maker.op) == devices::Variable::kReferenceKind;
}

Result<std::vector<GraphVariable>> find_variables(const graph::Graph& graph) {
  ByName by_name;
  for (const graph::Node* node : graph.nodes())
    if (devices::makes_variable(node->op()))
      TAGFLOW_RETURN_IF_ERROR(
          add_variable(graph::Graph::to_def(*node), by_name));
  for (const graph::FunctionDef* function : graph.library().functions())
    for (const graph::NodeDef& node : function->nodes)
      if (devices::makes_variable(node.op))
        TAGFLOW_RETURN_IF_ERROR(add_variable(node, by_name));
  std::vector<GraphVariable> variables;
  for (auto& [name, variable] : by_name)
    variables.push_back(std::move(variable));
  return variables;
}

std::string list_some(std::span<const std::string> texts) {
  constexpr size_t kMost = 16;
  std::string text;
  for (size_t i = 0; i < std::min(texts.size(), kMost); ++i)
    text += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > kMost)
    text += fmt::format(", ... ({} more)", texts.size() - kMost);
  return text;
}

}  // namespace tagflow::actors
