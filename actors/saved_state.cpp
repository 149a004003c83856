// How a model's variables get their values: load_saved_state().
#include <algorithm>
#include <set>
#include <system_error>

#include "actors/saved_model.h"
#include "actors/snapshot.h"
#include "devices/checkpoint/bundle_reader.h"
#include "devices/state/resource_op.h"
#include "devices/state/state_kind.h"
#include "devices/state/variable.h"
#include "graph/fault.h"
#include "graph/object_graph.h"
#include "graph/prune.h"

namespace tagflow::actors {
namespace {

namespace fs = std::filesystem;
using checkpoint::BundleReader;
using checkpoint::TensorSlice;
using graph::SavedState;

constexpr const char* kSavedModelFile = "saved_model.pb";

// Where the files beside a graph are.
struct Files {
  std::string prefix;  // of the checkpoint; empty: there can be none
  fs::path assets;     // the folder
  bool is_saved_model = false;
};

Files files_of(const fs::path& model) {
  std::error_code code;
  fs::path path = fs::absolute(model, code);
  if (code) path = model;
  const bool is_folder = fs::is_directory(path, code);
  const fs::path folder = is_folder ? path : path.parent_path();
  Files files{"", folder / "assets", false};
  if (is_folder || path.filename() == kSavedModelFile) {
    files.prefix = (folder / "variables" / "variables").string();
    files.is_saved_model = true;
  } else if (path.extension() == ".meta") {
    files.prefix = path.replace_extension().string();
  }
  return files;
}

Result<std::vector<Feed>> feeds_of(const std::vector<graph::Asset>& assets,
                                   const fs::path& folder) {
  std::vector<Feed> feeds;
  for (const graph::Asset& asset : assets) {
    const fs::path file = fs::path(asset.file).lexically_normal();
    if (file.empty() || file.is_absolute() || *file.begin() == "..")
      return invalid_argument(
          "[saved_model] the asset {:?} of tensor \"{}\" is not in the folder "
          "of the assets",
          asset.file, asset.tensor);
    const fs::path path = folder / file;
    std::error_code code;
    if (!fs::exists(path, code))
      return error(
          Code::kNotFound,
          "[saved_model] there is no asset \"{}\", the value of tensor "
          "\"{}\"",
          path.string(), asset.tensor);
    feeds.emplace_back(asset.tensor, Tensor::scalar(path.string()));
  }
  return feeds;
}

// The name under which snapshots have the variable of a node.
std::string variable_name(const graph::Node& node) {
  return devices::resource_key(node).path();
}

// The objects of the program that wrote the checkpoint; none where it says
// nothing of them.
Result<graph::ObjectGraph> objects_of(const BundleReader& reader) {
  if (reader.find(graph::kObjectGraphKey) == nullptr)
    return graph::ObjectGraph();
  TAGFLOW_ASSIGN(const Tensor text,
                 reader.read(std::string(graph::kObjectGraphKey)));
  if (text.dtype() != DataType::kString || text.num_elements() != 1)
    return error(Code::kDataLoss,
                 "[saved_model] tensor \"{}\" of \"{}\" is {}, not one string",
                 graph::kObjectGraphKey, reader.prefix(), text.describe());
  auto objects = graph::parse_checkpoint_objects(text.data<std::string>()[0]);
  if (objects.ok()) return objects;
  return std::move(objects).status().with_prefix(
      fmt::format("[saved_model] the objects of \"{}\": ", reader.prefix()));
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

// The values of the variables of these names.
Result<Snapshot> read_by_names(const BundleReader& reader,
                               const SavedState& state,
                               const std::vector<std::string>& names,
                               const graph::ObjectGraph& objects) {
  // Objects have the names that variables have in the program. One that is of
  // several is of no use.
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

// What the graph's own saver restores.
Result<std::set<std::string>> names_of_saver(const graph::Graph& graph,
                                             const SavedState& state) {
  std::set<std::string> names;
  if (state.saver_restore.empty()) return names;
  graph::Node* restore = graph.find(state.saver_restore);
  if (restore == nullptr)
    return error(Code::kNotFound,
                 "[saved_model] the graph has no node \"{}\", by which its "
                 "saver restores variables",
                 state.saver_restore);
  for (const graph::Node* node :
       graph::needed_nodes(graph, {}, std::span(&restore, 1), {}))
    if (devices::kind_of(node->op()) == devices::Variable::kKind)
      names.insert(variable_name(*node));
  return names;
}

// The variables that functions capture, without those `restored`. None where
// model or checkpoint do not say what these are.
Result<Snapshot> read_by_objects(const BundleReader& reader,
                                 const graph::Graph& graph,
                                 const SavedState& state,
                                 const graph::ObjectGraph& objects,
                                 const std::set<std::string>& restored) {
  Snapshot snapshot;
  if (objects.objects.empty()) return snapshot;
  auto variables = graph::captured_variables(graph, state.objects, objects);
  if (!variables.ok())
    return std::move(variables).status().with_prefix(
        fmt::format("[saved_model] checkpoint \"{}\": ", reader.prefix()));
  for (const auto& [node, name, key] : *variables) {
    const std::string variable = variable_name(*node);
    if (restored.contains(variable)) continue;
    if (key.empty())
      return error(Code::kNotFound,
                   "[saved_model] the objects of checkpoint \"{}\" have no "
                   "value of variable {:?} (node \"{}\")",
                   reader.prefix(), name, node->name());
    Result<Tensor> value = reader.read(key);
    if (!value.ok())
      return std::move(value).status().with_prefix(
          fmt::format("variable \"{}\": ", node->name()));
    snapshot.variables.insert_or_assign(variable, std::move(value).value());
  }
  return snapshot;
}

// Assigns what the graph's own saver, where there is one, does not restore:
// that of a Keras model in a module restores variables that nobody reads.
Status restore_values(Session& session, const BundleReader& reader,
                      const SavedState& state) {
  TAGFLOW_ASSIGN(const graph::ObjectGraph objects, objects_of(reader));
  TAGFLOW_ASSIGN(const std::set<std::string> restored,
                 names_of_saver(session.graph(), state));
  TAGFLOW_ASSIGN(Snapshot snapshot, read_by_objects(reader, session.graph(),
                                                    state, objects, restored));
  const bool has_saver = !state.saver_restore.empty();
  if (has_saver && snapshot.variables.empty()) return {};
  TAGFLOW_ASSIGN(const auto snapshots, Snapshots::create(session));
  if (snapshot.variables.empty()) {
    TAGFLOW_ASSIGN(snapshot,
                   read_by_names(reader, state, snapshots->names(), objects));
  }
  return snapshots->restore(snapshot).with_prefix(
      fmt::format("[saved_model] checkpoint \"{}\": ", reader.prefix()));
}

// Why a model cannot be used that has no checkpoint.
Status check_needs_none(const Session& session, const SavedState& state,
                        const Files& files, Status missing) {
  if (!files.is_saved_model) return {};
  TAGFLOW_ASSIGN(const auto snapshots, Snapshots::create(session));
  const std::vector<std::string> names = snapshots->names();
  if (names.empty()) return {};
  if (!state.saver_restore.empty() && state.is_saver_v1)
    return error(Code::kUnimplemented,
                 "[saved_model] \"{}\" is a V1 checkpoint, which cannot be "
                 "read; save it with V2 (variable \"{}\" needs a value)",
                 files.prefix, names[0]);
  const std::string need =
      names.size() == 1
          ? "needs a value"
          : fmt::format("and {} more need values", names.size() - 1);
  return std::move(missing).with_prefix(
      fmt::format("[saved_model] variable \"{}\" {}: ", names[0], need));
}

Status restore(Session& session, const SavedState& state, const Files& files,
               std::vector<Feed> feeds, const RunOptions& options) {
  if (files.prefix.empty()) return {};
  const auto reader = BundleReader::open(files.prefix);
  if (reader.status().code() == Code::kNotFound)
    return check_needs_none(session, state, files, reader.status());
  TAGFLOW_RETURN_IF_ERROR(reader.status());
  if (!state.saver_restore.empty()) {
    feeds.emplace_back(state.saver_filename, Tensor::scalar(files.prefix));
    TAGFLOW_RETURN_IF_ERROR(
        session.run(feeds, {}, {state.saver_restore}, options).status());
  }
  return restore_values(session, **reader, state);
}

}  // namespace

Status load_saved_state(Session& session, const SavedState& state,
                        const fs::path& model, const RunOptions& options) try {
  const Files files = files_of(model);
  TAGFLOW_ASSIGN(const std::vector<Feed> feeds,
                 feeds_of(state.assets, files.assets));
  TAGFLOW_RETURN_IF_ERROR(restore(session, state, files, feeds, options));
  if (state.init_op.empty()) return {};
  return session.run(feeds, {}, {state.init_op}, options).status();
} catch (...) {
  return current_fault("saved_model");
}

}  // namespace tagflow::actors
