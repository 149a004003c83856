// The state of a program, as described in MetaGraphDefs and checkpoints.
#include <google/protobuf/arena.h>

#include <algorithm>

#include "graph/fault.h"
#include "graph/file/graph_proto.h"
#include "graph/file/object_graph.h"
#include "graph/file/wire.h"
#include "graph/proto/meta_graph.pb.h"

namespace tagflow::graph {
namespace {

namespace pb = google::protobuf;

// A signature of TF2 without inputs, whose output is a node to run.
constexpr const char* kInitSignature = "__saved_model_init_op";
constexpr const char* kInitCollections[] = {"saved_model_main_op",
                                            "legacy_init_op"};
constexpr const char* kVariables = "variables";
constexpr const char* kAssets = "saved_model_assets";
// The name of the tensor of an object in a checkpoint.
constexpr const char* kVariableValue = "VARIABLE_VALUE";

// The node of "node", "node:0" or "^node".
std::string node_of(std::string name) {
  if (const size_t colon = name.rfind(':'); colon != name.npos)
    name.resize(colon);
  return name.starts_with('^') ? name.substr(1) : name;
}

std::string init_op_of(const tensorflow::MetaGraphDef& proto) {
  const auto& signatures = proto.signature_def();
  if (const auto it = signatures.find(kInitSignature); it != signatures.end())
    for (const auto& [name, info] : it->second.outputs())
      return node_of(info.name());
  const auto& collections = proto.collection_def();
  for (const char* name : kInitCollections) {
    const auto it = collections.find(name);
    if (it != collections.end() && it->second.node_list().value_size() > 0)
      return node_of(it->second.node_list().value(0));
  }
  return "";
}

// TensorFlow 1 puts assets into a collection; later versions list them, and
// may keep the collection. The list decides if there are both.
Result<std::vector<Asset>> assets_of(const tensorflow::MetaGraphDef& proto) {
  std::vector<Asset> assets;
  for (const auto& asset : proto.asset_file_def())
    assets.push_back({asset.tensor_info().name(), asset.filename()});
  const auto it = proto.collection_def().find(kAssets);
  if (!assets.empty() || it == proto.collection_def().end()) return assets;
  for (const auto& any : it->second.any_list().value()) {
    if (!any.Is<tensorflow::AssetFileDef>())
      return invalid_argument(
          "collection \"{}\" has an element of type {:?}, which is not an "
          "AssetFileDef",
          kAssets, any.type_url());
    pb::Arena arena;
    auto& asset = *pb::Arena::CreateMessage<tensorflow::AssetFileDef>(&arena);
    TAGFLOW_RETURN_IF_ERROR(parse_message(any.value(), "AssetFileDef", &asset));
    // TensorFlow may add an asset twice.
    const Asset made{asset.tensor_info().name(), asset.filename()};
    const auto same = std::ranges::find(assets, made.tensor, &Asset::tensor);
    if (same == assets.end())
      assets.push_back(made);
    else
      *same = made;
  }
  return assets;
}

// Reads the position of a variable that is a slice of a larger one.
Status add_part(std::string_view bytes, std::vector<SavedPart>& parts) {
  pb::Arena arena;
  auto& variable = *pb::Arena::CreateMessage<tensorflow::VariableDef>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "VariableDef", &variable));
  if (!variable.has_save_slice_info_def()) return {};
  const tensorflow::SaveSliceInfoDef& slice = variable.save_slice_info_def();
  SavedPart part{node_of(variable.variable_name()),
                 slice.full_name(),
                 {slice.full_shape().begin(), slice.full_shape().end()},
                 {slice.var_offset().begin(), slice.var_offset().end()},
                 {slice.var_shape().begin(), slice.var_shape().end()}};
  if (part.begin.size() != part.shape.size() ||
      part.size.size() != part.shape.size())
    return invalid_argument(
        "variable \"{}\" is a part of \"{}\", which has {} dimensions, but its "
        "offset has {} and its shape {}",
        part.variable, part.whole, part.shape.size(), part.begin.size(),
        part.size.size());
  parts.push_back(std::move(part));
  return {};
}

// The common part of the objects in both kinds of files.
template <class Proto>
Result<SavedObject> object_from_proto(const Proto& proto, int number,
                                      int count) {
  const auto check = [&](int other) -> Status {
    if (other >= 0 && other < count) return {};
    return invalid_argument(
        "[objects] object {} refers to object {}, of {} objects", number, other,
        count);
  };
  SavedObject object;
  for (const auto& child : proto.children()) {
    TAGFLOW_RETURN_IF_ERROR(check(child.node_id()));
    object.children.emplace_back(child.local_name(), child.node_id());
  }
  for (const auto& slot : proto.slot_variables()) {
    TAGFLOW_RETURN_IF_ERROR(check(slot.original_variable_node_id()));
    TAGFLOW_RETURN_IF_ERROR(check(slot.slot_variable_node_id()));
    object.slots.push_back({slot.slot_name(), slot.original_variable_node_id(),
                            slot.slot_variable_node_id()});
  }
  return object;
}

}  // namespace

Result<ObjectGraph> objects_from_proto(
    const tensorflow::SavedObjectGraph& proto) {
  ObjectGraph graph;
  for (int i = 0; i < proto.nodes_size(); ++i) {
    const tensorflow::SavedObject& node = proto.nodes(i);
    TAGFLOW_ASSIGN(SavedObject object,
                   object_from_proto(node, i, proto.nodes_size()));
    object.is_variable = node.has_variable();
    object.name = node.variable().name();
    graph.objects.push_back(std::move(object));
  }
  for (const auto& [name, function] : proto.concrete_functions())
    graph.captures[name].assign(function.bound_inputs().begin(),
                                function.bound_inputs().end());
  return graph;
}

Result<ObjectGraph> parse_checkpoint_objects(std::string_view bytes) try {
  TAGFLOW_RETURN_IF_ERROR(check_count(bytes, {{1}, {1, 1}, {1, 2}, {1, 3}},
                                      "objects and references to them",
                                      Limits{}.max_nodes));
  pb::Arena arena;
  auto* proto =
      pb::Arena::CreateMessage<tensorflow::TrackableObjectGraph>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "TrackableObjectGraph", proto));
  ObjectGraph graph;
  for (int i = 0; i < proto->nodes_size(); ++i) {
    TAGFLOW_ASSIGN(SavedObject object,
                   object_from_proto(proto->nodes(i), i, proto->nodes_size()));
    for (const auto& attribute : proto->nodes(i).attributes()) {
      if (attribute.name() != kVariableValue) continue;
      object.is_variable = true;
      object.name = attribute.full_name();
      object.key = attribute.checkpoint_key();
    }
    graph.objects.push_back(std::move(object));
  }
  return graph;
} catch (...) {
  return current_fault("objects");
}

Result<std::string> format_checkpoint_objects(const ObjectGraph& graph) try {
  pb::Arena arena;
  auto* proto =
      pb::Arena::CreateMessage<tensorflow::TrackableObjectGraph>(&arena);
  for (const SavedObject& object : graph.objects) {
    auto* node = proto->add_nodes();
    for (const auto& [name, child] : object.children) {
      auto* reference = node->add_children();
      reference->set_node_id(child);
      reference->set_local_name(name);
    }
    for (const SavedObject::Slot& slot : object.slots) {
      auto* reference = node->add_slot_variables();
      reference->set_original_variable_node_id(slot.variable);
      reference->set_slot_name(slot.name);
      reference->set_slot_variable_node_id(slot.slot);
    }
    if (object.key.empty()) continue;
    auto* value = node->add_attributes();
    value->set_name(kVariableValue);
    value->set_full_name(object.name);
    value->set_checkpoint_key(object.key);
  }
  return proto->SerializeAsString();
} catch (...) {
  return current_fault("objects");
}

Result<SavedState> state_from_proto(const tensorflow::MetaGraphDef& proto) {
  SavedState state;
  const tensorflow::SaverDef& saver = proto.saver_def();
  state.saver_filename = saver.filename_tensor_name();
  state.saver_restore = node_of(saver.restore_op_name());
  state.is_saver_v1 = saver.version() != tensorflow::SaverDef::V2;
  const auto& collections = proto.collection_def();
  if (const auto it = collections.find(kVariables); it != collections.end())
    for (const std::string& variable : it->second.bytes_list().value())
      TAGFLOW_RETURN_IF_ERROR(add_part(variable, state.parts));
  state.init_op = init_op_of(proto);
  TAGFLOW_ASSIGN(state.assets, assets_of(proto));
  TAGFLOW_ASSIGN(state.objects, objects_from_proto(proto.object_graph_def()));
  return state;
}

}  // namespace tagflow::graph
