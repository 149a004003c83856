// load_saved_state(): loads the values of a model's variables.
#include <algorithm>
#include <system_error>

#include "actors/checkpoint/saved_model.h"
#include "actors/checkpoint/saved_values.h"
#include "actors/session/backend.h"
#include "devices/files/scoped_files.h"
#include "graph/beneath.h"
#include "graph/fault.h"
#include "graph/file/model_scope.h"
#include "graph/status_text.h"

namespace tagflow::actors {
namespace {

namespace fs = std::filesystem;
using checkpoint::BundleReader;
using graph::SavedState;

constexpr const char* kSavedModelFiles[] = {"saved_model.pb",
                                            "saved_model.pbtxt"};
constexpr const char* kAssets = "assets";

// The locations of the files beside a graph.
struct Files {
  fs::path folder;     // of the model
  std::string prefix;  // of the checkpoint; empty: there can be none
  bool is_saved_model = false;
};

Files files_of(const fs::path& model) {
  std::error_code code;
  fs::path path = fs::absolute(model, code);
  if (code) path = model;
  const bool is_folder = fs::is_directory(path, code);
  Files files{is_folder ? path : path.parent_path(), "", false};
  if (is_folder || std::ranges::find(kSavedModelFiles, path.filename()) !=
                       std::end(kSavedModelFiles)) {
    files.prefix = (files.folder / "variables" / "variables").string();
    files.is_saved_model = true;
  } else if (path.extension() == ".meta") {
    files.prefix = path.replace_extension().string();
  }
  return files;
}

// What the loader of a model reads. A link of the model must not lead to what
// its ops must not read.
class ModelFiles final : public checkpoint::ScopedFiles {
 public:
  ModelFiles(fs::path folder, const graph::FileScope& reads)
      : ScopedFiles(reads, graph::FileScope::nowhere()),
        folder_(std::move(folder)),
        reads_(reads) {}

  Result<std::unique_ptr<checkpoint::ReadableFile>> open(
      const std::string& path) override {
    TAGFLOW_ASSIGN(const std::string found,
                   graph::resolve_model_file(folder_, path, reads_));
    return checkpoint::local_files().open(found);
  }

 private:
  const fs::path folder_;
  const graph::FileScope& reads_;
};

// InvalidArgument if the graph does not have the node or tensor that its file
// calls `what`.
Status check_has(const Session& session, const std::string& name,
                 std::string_view what) {
  const Status found = session.graph().endpoint(name).status();
  if (found.ok() || session.graph().find(name) != nullptr) return {};
  return invalid_argument(
      "[saved_model] the model says that {} is \"{}\", but: {}", what, name,
      found.message());
}

Result<std::vector<Feed>> feeds_of(const Session& session,
                                   const std::vector<graph::Asset>& assets,
                                   const fs::path& folder) {
  std::vector<Feed> feeds;
  for (const graph::Asset& asset : assets) {
    const fs::path file = fs::path(asset.file).lexically_normal();
    if (file.empty() || file.is_absolute() || *file.begin() == "..")
      return invalid_argument(
          "[saved_model] the asset {:?} of tensor \"{}\" is not in the folder "
          "of the assets",
          asset.file, asset.tensor);
    // The graph may print what it is fed, or send it away.
    TAGFLOW_RETURN_IF_ERROR(
        resolve_beneath(folder, fs::path(kAssets) / file)
            .status()
            .with_prefix(fmt::format("[saved_model] the asset {:?} of tensor "
                                     "\"{}\": ",
                                     asset.file, asset.tensor)));
    const fs::path path = folder / kAssets / file;
    std::error_code code;
    if (!fs::exists(path, code))
      return error(
          Code::kNotFound,
          "[saved_model] there is no asset \"{}\", the value of tensor "
          "\"{}\"",
          path.string(), asset.tensor);
    TAGFLOW_RETURN_IF_ERROR(
        check_has(session, asset.tensor,
                  fmt::format("the tensor of the asset {:?}", asset.file)));
    feeds.emplace_back(asset.tensor, Tensor::scalar(path.string()));
  }
  return feeds;
}

// Assigns values that the graph's own saver, if there is one, does not restore:
// the saver of a Keras model in a module restores variables that no node reads.
Status restore_values(Session& session, const BundleReader& reader,
                      const SavedState& state) {
  TAGFLOW_ASSIGN(const graph::ObjectGraph objects, objects_of(reader));
  TAGFLOW_ASSIGN(Snapshot snapshot,
                 read_by_objects(reader, session.graph(), state, objects));
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

// Why a model without a checkpoint cannot be used.
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
  ModelFiles readable(files.folder, session.options().policy.reads);
  const auto reader = BundleReader::open(files.prefix, readable);
  if (reader.status().code() == Code::kNotFound)
    return check_needs_none(session, state, files, reader.status());
  TAGFLOW_RETURN_IF_ERROR(reader.status());
  if (!state.saver_restore.empty()) {
    TAGFLOW_RETURN_IF_ERROR(
        check_has(session, state.saver_restore, "the op of its saver"));
    TAGFLOW_RETURN_IF_ERROR(
        check_has(session, state.saver_filename, "the file name of its saver"));
    feeds.emplace_back(state.saver_filename, Tensor::scalar(files.prefix));
    TAGFLOW_RETURN_IF_ERROR(name_file(
        session.run(feeds, {}, {state.saver_restore}, options).status(),
        files.prefix));
  }
  return restore_values(session, **reader, state);
}

}  // namespace

Status load_saved_state(Session& session, const SavedState& described,
                        const fs::path& model, const RunOptions& options) try {
  SavedState state = described;
  // In other processes, the graph's own saver would read their files.
  const Backend* const backend = session.options().backend.get();
  if (backend != nullptr && !backend->has_local_files())
    state.saver_restore.clear();
  const Files files = files_of(model);
  TAGFLOW_ASSIGN(const std::vector<Feed> feeds,
                 feeds_of(session, state.assets, files.folder));
  TAGFLOW_RETURN_IF_ERROR(restore(session, state, files, feeds, options));
  if (state.init_op.empty()) return {};
  TAGFLOW_RETURN_IF_ERROR(check_has(session, state.init_op, "its init op"));
  return name_file(session.run(feeds, {}, {state.init_op}, options).status(),
                   model.string());
} catch (...) {
  return current_fault("saved_model");
}

}  // namespace tagflow::actors
