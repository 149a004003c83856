#include "actors/checkpoint/checkpoint.h"

#include <set>
#include <utility>

#include "devices/files/bundle_reader.h"
#include "devices/files/tensor_file.h"
#include "devices/state/saved_contents.h"
#include "graph/file/object_graph.h"

namespace tagflow::actors {
namespace {

constexpr std::string_view kOurs = "_tagflow/";
constexpr std::string_view kSeed = "_tagflow/seed";
constexpr std::string_view kRuns = "_tagflow/runs/";
constexpr std::string_view kUnset = "_tagflow/unset/";
constexpr std::string_view kContents = "_tagflow/contents/";
// Every file of tf.train.Checkpoint.save() has this tensor: the number of
// saves.
constexpr std::string_view kSaveCounter =
    "save_counter/.ATTRIBUTES/VARIABLE_VALUE";

std::string unset_name(std::string_view variable) {
  return fmt::format("{}{}", kUnset, variable);
}

// The value of a scalar from 0 to `most`.
template <class T>
Result<T> read_number(const checkpoint::TensorFile& file, std::string_view name,
                      T most) {
  TAGFLOW_ASSIGN(const Tensor tensor, file.read(name));
  const Result<T> value = tensor.item<T>();
  if (value.ok() && *value >= T() && *value <= most) return value;
  return error(Code::kDataLoss, "[checkpoint] \"{}\" of \"{}\" is {}", name,
               file.path(), tensor.to_string());
}

// The name of the variable's tensor.
const std::string& key_of(const std::string& variable,
                          const ModelObjects::Places& places) {
  const auto it = places.find(variable);
  return it == places.end() ? variable : it->second.key;
}

// `wanted` is its type.
std::string missing_text(const std::string& variable, std::string_view wanted,
                         const ModelObjects::Places& places) {
  const auto it = places.find(variable);
  if (it == places.end())
    return fmt::format("\"{}\" ({}) is not in it", variable, wanted);
  return fmt::format("\"{}\" ({}), which is the object \"{}\", is not in it",
                     variable, wanted, it->second.path);
}

// Whether the graph need not have the tensor.
bool is_no_variable(const std::string& tensor, const ModelObjects& objects) {
  return tensor.starts_with(kOurs) || tensor == graph::kObjectGraphKey ||
         tensor == kSaveCounter || objects.is_spare(tensor) ||
         objects.has_object(tensor);
}

// The slice of the file's tensor that is the variable's value; null if it is
// the whole tensor.
const checkpoint::ShapeAndSlice* part_of(const std::string& variable,
                                         const ModelObjects::Places& places) {
  const auto it = places.find(variable);
  return it == places.end() || !it->second.part ? nullptr : &*it->second.part;
}

// Whether the tensor has the variable's type, and a shape that it may have.
bool fits(const checkpoint::TensorInfo& info, const GraphVariable& variable,
          const checkpoint::ShapeAndSlice* part) {
  if (info.dtype != dtype_name(variable.dtype)) return false;
  if (part == nullptr) return variable.shape.accepts(info.shape);
  return info.shape == part->shape && variable.shape.accepts(part->slice_shape);
}

// The differences between the file and the graph; fills `unused`.
std::vector<std::string> differences(const checkpoint::TensorFile& file,
                                     std::span<const GraphVariable> variables,
                                     const ModelObjects& objects,
                                     const ModelObjects::Places& places,
                                     std::vector<std::string>& unused) {
  std::vector<std::string> wrong;
  std::set<std::string_view> known;
  for (const GraphVariable& variable : variables) {
    const std::string& key = key_of(variable.name, places);
    known.insert(key);
    const std::string wanted = fmt::format("{}{}", dtype_name(variable.dtype),
                                           variable.shape.to_string());
    const checkpoint::TensorInfo* info = file.find(key);
    if (info == nullptr) {
      if (file.find(unset_name(variable.name)) == nullptr)
        wrong.push_back(missing_text(variable.name, wanted, places));
    } else if (const auto* part = part_of(variable.name, places);
               !fits(*info, variable, part)) {
      if (part != nullptr)
        wrong.push_back(fmt::format(
            "\"{}\" is {}, but the graph has \"{}\" ({}), a part of {}", key,
            info->type_text(), variable.name, wanted, part->shape.to_string()));
      else
        wrong.push_back(fmt::format("\"{}\" is {}, but the graph has {}",
                                    variable.name, info->type_text(), wanted));
    }
  }
  for (const checkpoint::TensorInfo& info : file.tensors())
    if (!known.contains(info.name) && !is_no_variable(info.name, objects))
      unused.push_back(info.name);
  return wrong;
}

Status check(const checkpoint::TensorFile& file,
             std::span<const GraphVariable> variables,
             const ModelObjects& objects, const ModelObjects::Places& places,
             OtherTensors others, std::vector<std::string>& unused) {
  std::vector<std::string> wrong =
      differences(file, variables, objects, places, unused);
  if (wrong.empty() && (unused.empty() || others == OtherTensors::kIgnored))
    return {};
  for (const std::string& name : unused)
    wrong.push_back(fmt::format("\"{}\" ({}) is not a variable of the graph",
                                name, file.find(name)->type_text()));
  return invalid_argument("[checkpoint] \"{}\" is of another model: {}",
                          file.path(), list_some(wrong));
}

// Loads the state of random ops, and the step; nothing if another program wrote
// the file.
Status load_counts(const checkpoint::TensorFile& file, Checkpoint& into) {
  if (file.find(kStepKey) != nullptr) {
    TAGFLOW_ASSIGN(into.step, read_number(file, kStepKey, kMostSteps));
  }
  if (file.find(kSeed) == nullptr) return {};
  TAGFLOW_ASSIGN(into.snapshot.seed, read_number(file, kSeed, UINT64_MAX));
  for (const checkpoint::TensorInfo& info : file.tensors()) {
    if (!info.name.starts_with(kRuns)) continue;
    TAGFLOW_ASSIGN(const int64_t runs,
                   read_number(file, info.name, kMostSteps));
    into.snapshot.run_counts.emplace(info.name.substr(kRuns.size()), runs);
  }
  return {};
}

// Loads the contents of queues, tables and the like.
Status load_contents(const checkpoint::TensorFile& file, Snapshot& into) {
  for (const checkpoint::TensorInfo& info : file.tensors()) {
    if (!info.name.starts_with(kContents)) continue;
    TAGFLOW_ASSIGN(Tensor contents, file.read(info.name));
    if (!devices::packed_key(contents).ok())
      return error(Code::kDataLoss, "[checkpoint] \"{}\" of \"{}\" is {}",
                   info.name, file.path(), contents.describe());
    into.contents.push_back(std::move(contents));
  }
  return {};
}

// Leaves the variable to its reader, if it has one, and the file is a bundle in
// which its value is in one piece.
bool leave_to_reader(const checkpoint::TensorFile& file,
                     const std::string& variable, const std::string& key,
                     const Readers& readers, StoredVariables& stored) {
  const auto reader = readers.find(variable);
  if (reader == readers.end() || file.bundle() == nullptr) return false;
  const checkpoint::BundleEntry* const entry = file.bundle()->find(key);
  if (entry == nullptr || entry->is_sliced()) return false;
  stored.prefix = file.path();
  stored.num_shards = file.num_shards();
  stored.places.emplace(variable,
                        StoredVariables::Place{reader->second, *entry});
  return true;
}

// Loads one file completely, but for what is left to readers.
Result<LoadedCheckpoint> load_file(const checkpoint::TensorFile& file,
                                   std::span<const GraphVariable> variables,
                                   const ModelObjects& objects,
                                   OtherTensors others,
                                   const Readers& readers) {
  LoadedCheckpoint loaded;
  loaded.restored.path = file.path();
  for (const auto& [prefix, what] : file.damaged()) {
    loaded.restored.damaged.push_back(what);
    loaded.passed_over.push_back(prefix);
  }
  TAGFLOW_ASSIGN(const ModelObjects::Places places, objects.places_in(file));
  TAGFLOW_RETURN_IF_ERROR(
      check(file, variables, objects, places, others, loaded.restored.unused));
  for (const GraphVariable& variable : variables) {
    const std::string& key = key_of(variable.name, places);
    if (file.find(key) == nullptr) continue;
    const checkpoint::ShapeAndSlice* const part =
        part_of(variable.name, places);
    if (part == nullptr &&
        leave_to_reader(file, variable.name, key, readers, loaded.stored))
      continue;
    TAGFLOW_ASSIGN(Tensor value, part == nullptr
                                     ? file.read(key)
                                     : file.read_slice(key, part->slice));
    loaded.checkpoint.snapshot.variables.emplace(variable.name,
                                                 std::move(value));
  }
  TAGFLOW_RETURN_IF_ERROR(load_counts(file, loaded.checkpoint));
  TAGFLOW_RETURN_IF_ERROR(load_contents(file, loaded.checkpoint.snapshot));
  loaded.restored.step = loaded.checkpoint.step;
  loaded.restored.counts_steps = file.find(kStepKey) != nullptr;
  return loaded;
}

}  // namespace

Result<std::unique_ptr<checkpoint::BundleWriter>> prepare_checkpoint(
    const std::string& prefix, Checkpoint checkpoint,
    std::span<const std::string> names, const ModelObjects& objects,
    std::vector<checkpoint::ForeignShard> shards,
    const checkpoint::WriteOptions& options) {
  Snapshot& snapshot = checkpoint.snapshot;
  TAGFLOW_ASSIGN(auto writer, checkpoint::BundleWriter::create_first(
                                  prefix, int(shards.size()) + 1, options));
  for (checkpoint::ForeignShard& shard : shards)
    TAGFLOW_RETURN_IF_ERROR(writer->adopt(std::move(shard)));
  for (const std::string& name : names) {
    const std::string& key = objects.key_of(name);
    if (key.starts_with(kOurs))
      return invalid_argument(
          "[checkpoint] variable \"{}\" cannot be saved as \"{}\": names that "
          "begin with \"{}\" are the checkpoint's own",
          name, key, kOurs);
    if (!snapshot.has(name))
      TAGFLOW_RETURN_IF_ERROR(
          writer->add(unset_name(name), Tensor::scalar(true)));
  }
  TAGFLOW_ASSIGN(const Tensor described, objects.describe(snapshot));
  if (described.valid())
    TAGFLOW_RETURN_IF_ERROR(
        writer->add(std::string(graph::kObjectGraphKey), described));
  for (const std::string& name : names) {
    const auto it = snapshot.variables.find(name);
    if (it == snapshot.variables.end()) continue;
    TAGFLOW_RETURN_IF_ERROR(writer->add(objects.key_of(name), it->second));
    it->second.reset();
  }
  TAGFLOW_RETURN_IF_ERROR(
      writer->add(kStepKey, Tensor::scalar(checkpoint.step)));
  if (snapshot.seed)
    TAGFLOW_RETURN_IF_ERROR(
        writer->add(kSeed, Tensor::scalar<uint64_t>(*snapshot.seed)));
  for (const auto& [node, runs] : snapshot.run_counts)
    TAGFLOW_RETURN_IF_ERROR(
        writer->add(fmt::format("{}{}", kRuns, node), Tensor::scalar(runs)));
  for (size_t i = 0; i < snapshot.contents.size(); ++i) {
    TAGFLOW_RETURN_IF_ERROR(
        writer->add(fmt::format("{}{}", kContents, i), snapshot.contents[i]));
    snapshot.contents[i].reset();
  }
  TAGFLOW_RETURN_IF_ERROR(writer->finish());
  return writer;
}

Result<LoadedCheckpoint> load_checkpoint(
    const std::string& path, std::span<const GraphVariable> variables,
    const ModelObjects& objects, OtherTensors others,
    checkpoint::FileSystem& files, const Readers& readers) {
  const bool is_folder = files.is_folder(path);
  checkpoint::DamagedCheckpoints damaged;
  while (true) {
    TAGFLOW_ASSIGN(const auto file,
                   checkpoint::open_tensor_file(path, damaged, files));
    auto loaded = load_file(*file, variables, objects, others, readers);
    if (!is_folder || loaded.status().code() != Code::kDataLoss) return loaded;
    damaged.emplace(file->path(), std::move(loaded).status());
  }
}

}  // namespace tagflow::actors
