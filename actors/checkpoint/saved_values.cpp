#include "actors/checkpoint/saved_values.h"

#include <map>
#include <set>

#include "actors/checkpoint/model_objects.h"
#include "devices/state/resource_op.h"
#include "graph/file/object_graph.h"

namespace tagflow::actors {
namespace {

using checkpoint::BundleReader;
using checkpoint::TensorSlice;
using graph::SavedState;

// The name under which snapshots have the variable of a node.
std::string variable_name(const graph::Node& node) {
  return devices::resource_key(node).path();
}

Result<Tensor> read_part(const BundleReader& reader,
                         const graph::SavedPart& part) {
  std::vector<checkpoint::Extent> extents;
  for (size_t i = 0; i < part.begin.size(); ++i)
    extents.push_back({part.begin[i], part.size[i]});
  Result<Tensor> value =
      reader.read_slice(part.whole, TensorSlice(std::move(extents)));
  if (value.ok()) return value;
  return std::move(value).status().with_prefix(fmt::format(
      "variable \"{}\", a part of \"{}\": ", part.variable, part.whole));
}

}  // namespace

Result<graph::ObjectGraph> objects_of(const BundleReader& reader) {
  if (reader.find(graph::kObjectGraphKey) == nullptr)
    return graph::ObjectGraph();
  TAGFLOW_ASSIGN(const Tensor value,
                 reader.read(std::string(graph::kObjectGraphKey)));
  return parse_objects(value, reader.prefix());
}

Result<Snapshot> read_by_names(const BundleReader& reader,
                               const SavedState& state,
                               const std::vector<std::string>& names,
                               const graph::ObjectGraph& objects) {
  // Objects have the names of variables in the program. A name that several
  // objects share is not used.
  std::map<std::string_view, std::string_view> keys;
  for (const graph::SavedObject& object : objects.objects) {
    if (!object.is_variable) continue;
    const auto [it, is_new] = keys.try_emplace(object.name, object.key);
    if (!is_new && it->second != object.key) it->second = {};
  }
  std::map<std::string_view, const graph::SavedPart*> parts;
  for (const graph::SavedPart& part : state.parts)
    parts.emplace(part.variable, &part);
  Snapshot snapshot;
  for (const std::string& name : names) {
    if (const auto it = parts.find(name);
        it != parts.end() && reader.find(it->second->whole) != nullptr) {
      TAGFLOW_ASSIGN(snapshot.variables[name], read_part(reader, *it->second));
      continue;
    }
    std::string key = name;
    if (const auto it = keys.find(name);
        it != keys.end() && reader.find(key) == nullptr)
      key = std::string(it->second);
    if (reader.find(key) == nullptr) continue;
    TAGFLOW_ASSIGN(snapshot.variables[name], reader.read(key));
  }
  if (snapshot.variables.empty() && !names.empty())
    return error(Code::kNotFound,
                 "[saved_model] checkpoint \"{}\" has no value of variable "
                 "\"{}\", nor of any of the graph's {}",
                 reader.prefix(), names[0], names.size());
  return snapshot;
}

Result<Snapshot> read_by_objects(const BundleReader& reader,
                                 const graph::Graph& graph,
                                 const SavedState& state,
                                 const graph::ObjectGraph& objects) {
  Snapshot snapshot;
  if (objects.objects.empty()) return snapshot;
  TAGFLOW_ASSIGN(const std::set<std::string> restored,
                 variables_of_saver(graph, state));
  auto variables = graph::captured_variables(graph, state.objects, objects);
  if (!variables.ok())
    return std::move(variables).status().with_prefix(
        fmt::format("[saved_model] checkpoint \"{}\": ", reader.prefix()));
  for (const graph::SavedVariable& one : *variables) {
    const std::string variable = variable_name(*one.node);
    if (restored.contains(variable)) continue;
    if (one.key.empty())
      return error(Code::kNotFound,
                   "[saved_model] the objects of checkpoint \"{}\" have no "
                   "value of variable {:?} (node \"{}\")",
                   reader.prefix(), one.name, one.node->name());
    Result<Tensor> value = reader.read(one.key);
    if (!value.ok())
      return std::move(value).status().with_prefix(
          fmt::format("variable \"{}\": ", one.node->name()));
    snapshot.variables.insert_or_assign(variable, std::move(value).value());
  }
  return snapshot;
}

}  // namespace tagflow::actors
