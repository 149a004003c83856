#include "actors/checkpoint/model_objects.h"

#include <algorithm>
#include <utility>

#include "devices/state/resource_op.h"
#include "devices/state/state_kind.h"
#include "devices/state/variable.h"
#include "graph/analysis/prune.h"

namespace tagflow::actors {
namespace {

// The suffix of TensorFlow's keys.
constexpr std::string_view kValue = "/.ATTRIBUTES/VARIABLE_VALUE";

std::string name_of(const graph::Node& variable) {
  return devices::resource_key(variable).path();
}

// The node of the variable whose handle is input 0.
const graph::Node* variable_of(const graph::Node& node) {
  if (node.inputs().empty()) return nullptr;
  const graph::Node* maker = node.inputs()[0].node;
  return maker != nullptr && maker->op() == "VarHandleOp" ? maker : nullptr;
}

// The variable that a node reads; null if the node is not a read.
const graph::Node* read_by(const graph::Node* node) {
  return node != nullptr && node->op() == "ReadVariableOp" ? variable_of(*node)
                                                           : nullptr;
}

// The names of variables that are read only for the initial values of `spare`
// ones.
std::set<std::string> initializers_of(const graph::Graph& graph,
                                      const std::set<std::string>& spare) {
  std::set<std::string> names, others;
  for (const graph::Node* node : graph.nodes()) {
    const graph::Node* target =
        node->op() == "AssignVariableOp" ? variable_of(*node) : nullptr;
    const bool is_first = target != nullptr && spare.contains(name_of(*target));
    for (const graph::Endpoint& input : node->inputs()) {
      if (input.node == nullptr) continue;
      if (const graph::Node* source = read_by(input.node))
        (is_first ? names : others).insert(name_of(*source));
      if (input.node->op() == "VarHandleOp" && read_by(node) == nullptr)
        others.insert(name_of(*input.node));
    }
  }
  for (const std::string& name : others) names.erase(name);
  return names;
}

Result<ModelObjects::Places> places_of_parts(
    const graph::Graph& graph, const std::vector<graph::SavedPart>& parts) {
  ModelObjects::Places places;
  for (const graph::SavedPart& part : parts) {
    const graph::Node* const node = graph.find(part.variable);
    if (node == nullptr || !devices::makes_variable(node->op())) continue;
    std::vector<checkpoint::Extent> extents;
    for (size_t i = 0; i < part.begin.size(); ++i)
      extents.push_back({part.begin[i], part.size[i]});
    checkpoint::ShapeAndSlice place;
    place.slice = checkpoint::TensorSlice(std::move(extents));
    const auto check = [&]() -> Status {
      TAGFLOW_ASSIGN(place.shape, Shape::make(part.shape));
      TAGFLOW_ASSIGN(place.slice_shape, place.slice.shape_in(place.shape));
      return {};
    };
    TAGFLOW_RETURN_IF_ERROR(check().with_prefix(fmt::format(
        "[saved_model] variable \"{}\", a part of \"{}\": ", part.variable,
        part.whole)));
    places.try_emplace(name_of(*node),
                       ModelObjects::Place{part.whole, "", std::move(place)});
  }
  return places;
}

}  // namespace

Result<ModelObjects> ModelObjects::make(const graph::Graph& graph,
                                        graph::SavedState model) {
  ModelObjects made;
  TAGFLOW_ASSIGN(made.parts_, places_of_parts(graph, model.parts));
  if (model.objects.objects.empty()) return made;
  TAGFLOW_ASSIGN(made.spare_, variables_of_saver(graph, model));
  TAGFLOW_ASSIGN(auto variables,
                 graph::captured_variables(graph, model.objects, {}));
  // Keys of a file must be unique. A slot variable of an optimizer may have no
  // parent: it gets a key that the paths of others do not use.
  std::stable_partition(
      variables.begin(), variables.end(),
      [](const auto& variable) { return !variable.path.empty(); });
  TAGFLOW_ASSIGN(const auto all, find_variables(graph));
  std::set<std::string> keys;
  for (const GraphVariable& variable : all) keys.insert(variable.name);
  for (const graph::SavedVariable& variable : variables) {
    std::string name = name_of(*variable.node);
    const std::string& stem = variable.path.empty() ? name : variable.path;
    std::string key = fmt::format("{}{}", stem, kValue);
    for (int i = 1; !keys.insert(key).second; ++i)
      key = fmt::format("{}_{}{}", stem, i, kValue);
    made.spare_.erase(name);
    made.variables_.try_emplace(
        std::move(name),
        Variable{variable.object, variable.path, std::move(key)});
  }
  for (std::string name : initializers_of(graph, made.spare_))
    if (!made.variables_.contains(name)) made.spare_.insert(std::move(name));
  made.objects_ = std::move(model.objects);
  return made;
}

std::vector<GraphVariable> ModelObjects::without_spare(
    std::vector<GraphVariable> variables) const {
  std::erase_if(variables, [&](const GraphVariable& variable) {
    return is_spare(variable.name);
  });
  return variables;
}

bool ModelObjects::has_object(std::string_view key) const {
  if (!key.ends_with(kValue)) return false;
  key.remove_suffix(kValue.size());
  return graph::find_object(objects_, key) >= 0;
}

Result<ModelObjects::Places> ModelObjects::places_in(
    const checkpoint::TensorFile& file) const {
  TAGFLOW_ASSIGN(Places places, places_of_objects(file));
  for (const auto& [name, place] : parts_)
    if (file.find(name) == nullptr && file.find(place.key) != nullptr)
      places.try_emplace(name, place);
  return places;
}

Result<ModelObjects::Places> ModelObjects::places_of_objects(
    const checkpoint::TensorFile& file) const {
  Places places;
  if (variables_.empty()) return places;
  if (file.find(graph::kObjectGraphKey) == nullptr)
    return places_by_names(file);
  TAGFLOW_ASSIGN(const Tensor value, file.read(graph::kObjectGraphKey));
  TAGFLOW_ASSIGN(const graph::ObjectGraph others,
                 parse_objects(value, file.path()));
  const std::vector<int> same = graph::same_objects(objects_, others);
  for (const auto& [name, variable] : variables_) {
    const int other = same[size_t(variable.object)];
    places.try_emplace(
        name,
        Place{other < 0 ? std::string() : others.objects[size_t(other)].key,
              variable.path,
              {}});
  }
  return places;
}

ModelObjects::Places ModelObjects::places_by_names(
    const checkpoint::TensorFile& file) const {
  std::map<int, std::string> keys, paths;  // by objects
  for (const checkpoint::TensorInfo& info : file.tensors()) {
    std::string_view path = info.name;
    const bool is_key = path.ends_with(kValue);
    if (is_key) path.remove_suffix(kValue.size());
    if (const int object = graph::find_object(objects_, path); object >= 0)
      (is_key ? keys : paths).try_emplace(object, info.name);
  }
  Places places;
  for (const auto& [name, variable] : variables_) {
    if (file.find(variable.key) != nullptr) {
      places.try_emplace(name, Place{variable.key, variable.path, {}});
    } else if (const auto key = keys.find(variable.object); key != keys.end()) {
      places.try_emplace(name, Place{key->second, variable.path, {}});
    } else if (const auto path = paths.find(variable.object);
               path != paths.end() && file.find(name) == nullptr) {
      places.try_emplace(name, Place{path->second, variable.path, {}});
    }
  }
  return places;
}

const std::string& ModelObjects::key_of(const std::string& variable) const {
  const auto it = variables_.find(variable);
  return it == variables_.end() ? variable : it->second.key;
}

Result<Tensor> ModelObjects::describe(const Snapshot& snapshot) const {
  if (variables_.empty()) return Tensor();
  graph::ObjectGraph objects = objects_;
  for (const auto& [name, variable] : variables_)
    if (snapshot.has(name))
      objects.objects[size_t(variable.object)].key = variable.key;
  TAGFLOW_ASSIGN(std::string text, graph::format_checkpoint_objects(objects));
  return Tensor::scalar(std::move(text));
}

Result<std::set<std::string>> variables_of_saver(
    const graph::Graph& graph, const graph::SavedState& model) {
  std::set<std::string> names;
  if (model.saver_restore.empty()) return names;
  graph::Node* restore = graph.find(model.saver_restore);
  if (restore == nullptr)
    return error(Code::kNotFound,
                 "[saved_model] the graph has no node \"{}\", by which its "
                 "saver restores variables",
                 model.saver_restore);
  for (const graph::Node* node :
       graph::needed_nodes(graph, {}, std::span(&restore, 1), {}))
    if (devices::kind_of(node->op()) == devices::Variable::kKind)
      names.insert(name_of(*node));
  return names;
}

Result<graph::ObjectGraph> parse_objects(const Tensor& value,
                                         std::string_view path) {
  if (value.dtype() != DataType::kString || value.num_elements() != 1)
    return error(Code::kDataLoss,
                 "[checkpoint] tensor \"{}\" of \"{}\" is {}, not one string",
                 graph::kObjectGraphKey, path, value.describe());
  auto objects = graph::parse_checkpoint_objects(value.data<std::string>()[0]);
  if (objects.ok()) return objects;
  return std::move(objects).status().with_prefix(
      fmt::format("[checkpoint] the objects of \"{}\": ", path));
}

}  // namespace tagflow::actors
