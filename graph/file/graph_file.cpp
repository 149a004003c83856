// The functions of graph/file/graphdef.h that access the file system.
#include <fmt/ranges.h>
#include <google/protobuf/arena.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>

#include "graph/beneath.h"
#include "graph/fault.h"
#include "graph/file/foreign_file.h"
#include "graph/file/graph_proto.h"
#include "graph/file/graphdef.h"
#include "graph/file/model_scope.h"
#include "graph/file/wire.h"
#include "graph/proto/meta_graph.pb.h"
#include "graph/temporary_file.h"
#include "graph/write_error.h"

namespace tagflow::graph {
namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;

constexpr const char* kSavedModel = "saved_model.pb";
constexpr const char* kSavedModelText = "saved_model.pbtxt";

// The file of the SavedModel in the folder. As in TensorFlow, the text is used
// only if there is no other.
fs::path saved_model_file(const fs::path& folder) {
  std::error_code code;
  const auto is_missing = [&](const char* name) {
    return fs::status(folder / name, code).type() == fs::file_type::not_found;
  };
  return folder / (is_missing(kSavedModel) && !is_missing(kSavedModelText)
                       ? kSavedModelText
                       : kSavedModel);
}

bool is_saved_model(const fs::path& file) {
  return file.filename() == kSavedModel || file.filename() == kSavedModelText;
}

bool is_text_name(const fs::path& path) {
  return path.extension() == ".pbtxt" || path.extension() == ".txt";
}

Result<std::string> read_bytes(const fs::path& path, const Limits& limits) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (code == std::errc::permission_denied)
    return error(Code::kPermissionDenied, "[graphdef] cannot read \"{}\": {}",
                 path.string(), code.message());
  if (!fs::exists(status))
    return error(Code::kNotFound, "[graphdef] no file \"{}\"", path.string());
  if (!fs::is_regular_file(status))
    return invalid_argument("[graphdef] \"{}\" is not a regular file",
                            path.string());
  const uintmax_t size = fs::file_size(path, code);
  if (!code && size > limits.max_bytes)
    return error(Code::kResourceExhausted,
                 "[graphdef] \"{}\" has {} bytes, the limit is {}",
                 path.string(), size, limits.max_bytes);
  std::ifstream file(path, std::ios::binary);
  std::string bytes(code ? 0 : size_t(size), '\0');
  file.read(bytes.data(), std::streamsize(bytes.size()));
  if (code || !file)
    return error(Code::kPermissionDenied, "[graphdef] cannot read \"{}\"",
                 path.string());
  // It would be a valid graph without nodes, but nobody writes such a file.
  if (bytes.empty())
    return error(Code::kDataLoss, "[graphdef] \"{}\" is empty", path.string());
  return bytes;
}

// Limited like nodes: the objects of the program, and what functions return.
constexpr const char* kObjects = "objects and references to them";

Result<GraphFile> parse_meta_graph(std::string_view bytes,
                                   const Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(
      check_message(bytes, {{2, 1}, {2, 2, 1, 3}}, "MetaGraphDef", limits));
  TAGFLOW_RETURN_IF_ERROR(
      check_count(bytes, {{7, 1}, {7, 1, 1}, {7, 1, 3}, {7, 2, 2, 4, 51, 1}},
                  kObjects, limits.max_nodes));
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::MetaGraphDef>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "MetaGraphDef", proto, limits));
  return meta_graph_from_proto(*proto, limits);
}

// Chooses the graph for inference, by its tag.
Result<tensorflow::MetaGraphDef*> graph_to_serve(
    tensorflow::SavedModel& model) {
  if (model.meta_graphs_size() == 0)
    return invalid_argument("the SavedModel has no graph");
  if (model.meta_graphs_size() == 1) return model.mutable_meta_graphs(0);
  std::string texts;
  for (tensorflow::MetaGraphDef& graph : *model.mutable_meta_graphs()) {
    const auto& tags = graph.meta_info_def().tags();
    if (std::ranges::find(tags, "serve") != tags.end()) return &graph;
    texts +=
        fmt::format("{}[{}]", texts.empty() ? "" : ", ", fmt::join(tags, ", "));
  }
  return invalid_argument(
      "none of the SavedModel's {} graphs has the tag \"serve\"; their tags "
      "are "
      "{}",
      model.meta_graphs_size(), texts);
}

// The file decides whether it is text.
Status read_saved_model(const fs::path& file, std::string_view bytes,
                        const Limits& limits, tensorflow::SavedModel* proto) {
  if (is_text_name(file))
    return parse_text(bytes, "SavedModel", limits, proto,
                      UnknownFields::kIgnored);
  TAGFLOW_RETURN_IF_ERROR(
      check_message(bytes, {{2, 2, 1}, {2, 2, 2, 1, 3}}, "SavedModel", limits));
  TAGFLOW_RETURN_IF_ERROR(check_count(
      bytes, {{2, 7, 1}, {2, 7, 1, 1}, {2, 7, 1, 3}, {2, 7, 2, 2, 4, 51, 1}},
      kObjects, limits.max_nodes));
  return parse_message(bytes, "SavedModel", proto, limits);
}

Result<GraphFile> parse_saved_model(const fs::path& file,
                                    std::string_view bytes,
                                    const Limits& limits) {
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::SavedModel>(&arena);
  TAGFLOW_RETURN_IF_ERROR(read_saved_model(file, bytes, limits, proto));
  TAGFLOW_ASSIGN(const auto* chosen, graph_to_serve(*proto));
  return meta_graph_from_proto(*chosen, limits);
}

Result<GraphFile> parse_file(const fs::path& path, std::string_view bytes,
                             const Limits& limits) {
  if (const std::string what =
          describe_foreign_file(path.filename().native(), bytes);
      !what.empty())
    return invalid_argument("[graphdef] not a graph, but {}", what);
  if (is_saved_model(path)) return parse_saved_model(path, bytes, limits);
  if (is_text_name(path)) return parse_graphdef_text(bytes, limits);
  if (path.extension() == ".meta") return parse_meta_graph(bytes, limits);
  return parse_graphdef(bytes, limits);
}

// `number` is what errno was, or 0.
Status cannot_write(const fs::path& path, int number) {
  return error(code_of_write(number, Code::kUnknown),
               "[graphdef] cannot write \"{}\": {}", path.string(),
               number == 0 ? "the system refuses" : std::strerror(number));
}

// Concurrent readers see the old file or the new one.
Status replace_file(const fs::path& path, const std::string& bytes) {
  constexpr mode_t kMode = 0666;  // reduced by the umask
  TemporaryFile made(path.native(), TemporaryFile::Kind::kFile, kMode);
  if (made.error() != 0) return cannot_write(path, made.error());
  const fs::path temporary = made.path();
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), std::streamsize(bytes.size()));
  file.close();
  std::error_code code;
  if (!file) {
    const int why = errno;
    made.forget();
    fs::remove(temporary, code);
    return cannot_write(path, why);
  }
  made.forget();
  fs::rename(temporary, path, code);
  if (!code) return {};
  const int why = code.value();
  fs::remove(temporary, code);
  return cannot_write(path, why);
}

// Copies the other files of a SavedModel. Links are followed if they stay in
// its folder: a stranger's model must not copy what else the user may read. The
// fingerprint is left out, since it is that of the old graph, as is the text of
// that graph.
Status copy_rest(const fs::path& from, const fs::path& to,
                 std::deque<UnfinishedFile>& copies) {
  // Folders can be nested; a cycle of links has no end.
  constexpr int kDeepest = 8;
  std::error_code code;
  fs::recursive_directory_iterator it(
      from, fs::directory_options::follow_directory_symlink, code);
  for (; !code && it != fs::recursive_directory_iterator();
       it.increment(code)) {
    const fs::path name = it->path().lexically_relative(from);
    if (is_saved_model(it->path()) && name.parent_path().empty()) continue;
    if (name == "fingerprint.pb") continue;
    if (it.depth() > kDeepest)
      return invalid_argument("[graphdef] \"{}\" nests folders {} deep",
                              from.string(), it.depth());
    if (it->is_symlink(code))
      TAGFLOW_RETURN_IF_ERROR(
          resolve_beneath(from, name)
              .status()
              .with_prefix(fmt::format("[graphdef] cannot copy \"{}\": ",
                                       from.string())));
    copies.emplace_back((to / name).native());
    // Does not copy modes of the original, which may be read-only.
    std::error_code failed;
    if (it->is_directory(failed))
      fs::create_directory(to / name, failed);
    else
      fs::copy_file(it->path(), to / name, failed);
    if (failed)
      return error(Code::kUnknown,
                   "[graphdef] cannot copy \"{}\" to \"{}\": {}",
                   it->path().string(), (to / name).string(), failed.message());
  }
  if (!code) return {};
  return error(Code::kPermissionDenied, "[graphdef] cannot read \"{}\": {}",
               from.string(), code.message());
}

// Checks that the new folder would not overwrite anything.
Status check_new(const fs::path& original, const fs::path& folder) {
  std::error_code code;
  const fs::path whole = fs::weakly_canonical(fs::absolute(folder), code);
  const fs::path inside =
      whole.lexically_relative(fs::weakly_canonical(original, code));
  if (!inside.empty() && *inside.begin() != "..")
    return invalid_argument(
        "[graphdef] \"{}\" is in the folder of the SavedModel that is copied",
        folder.string());
  const bool is_free =
      !fs::exists(fs::symlink_status(folder, code)) ||
      (fs::is_directory(folder, code) && fs::is_empty(folder, code) && !code);
  if (is_free) return {};
  return error(Code::kAlreadyExists,
               "[graphdef] \"{}\" is there already; a SavedModel is written to "
               "a new folder",
               folder.string());
}

}  // namespace

Status check_readable(const fs::path& name, std::string_view bytes) {
  return parse_file(name, bytes, {})
      .status()
      .with_prefix("[graphdef] nobody could read what would be written: ");
}

Result<std::string> resolve_model_file(const fs::path& folder,
                                       const fs::path& file,
                                       const FileScope& reads) {
  Result<std::string> readable = reads.resolve(file.string());
  if (readable.status().code() != Code::kPermissionDenied) return readable;
  Result<fs::path> own = resolve_beneath(folder, file);
  if (own.ok()) return own->string();
  return std::move(own).status().with_prefix(fmt::format(
      "[policy] {:?} is not beneath \"{}\", the folder of its model, nor in "
      "another folder that this session may read: ",
      file.string(), folder.string()));
}

Status check_model_file(const fs::path& model, const FileScope& reads) try {
  std::error_code code;
  if (!fs::is_directory(model, code)) return {};
  const fs::path folder = fs::absolute(model);
  const fs::path file = saved_model_file(folder);
  return resolve_model_file(folder, file, reads).status();
} catch (...) {
  return current_fault("graphdef");
}

Result<GraphFile> load_file(const fs::path& path, const Limits& limits) try {
  std::error_code code;
  const bool is_folder = fs::is_directory(path, code);
  const fs::path file = is_folder ? saved_model_file(path) : path;
  if (is_folder && fs::status(file, code).type() == fs::file_type::not_found)
    return error(Code::kNotFound,
                 "[graphdef] the folder \"{}\" is not a SavedModel: it has no "
                 "file \"{}\" or \"{}\"",
                 path.string(), kSavedModel, kSavedModelText);
  TAGFLOW_ASSIGN(const std::string bytes, read_bytes(file, limits));
  Result<GraphFile> parsed = parse_file(file, bytes, limits);
  if (parsed.ok()) return parsed;
  return std::move(parsed).status().with_prefix(path.string() + ": ");
} catch (...) {
  return current_fault("graphdef");
}

Result<Graph> load_graph(const fs::path& path, const Limits& limits) try {
  TAGFLOW_ASSIGN(GraphFile file, load_file(path, limits));
  Result<Graph> graph = build_graph(std::move(file), limits.budget);
  if (graph.ok()) return graph;
  return std::move(graph).status().with_prefix(path.string() + ": ");
} catch (...) {
  return current_fault("graphdef");
}

Status save_graph(const Graph& graph, const fs::path& path) try {
  TAGFLOW_ASSIGN(const std::string bytes, is_text_name(path)
                                              ? write_graphdef_text(graph)
                                              : write_graphdef(graph));
  return replace_file(path, bytes);
} catch (...) {
  return current_fault("graphdef");
}

Status save_model(const Graph& graph, const fs::path& original,
                  const fs::path& folder) try {
  const fs::path file = saved_model_file(original);
  TAGFLOW_ASSIGN(const std::string bytes, read_bytes(file, {}));
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::SavedModel>(&arena);
  TAGFLOW_RETURN_IF_ERROR(read_saved_model(file, bytes, {}, proto));
  TAGFLOW_ASSIGN(auto* chosen, graph_to_serve(*proto));
  chosen->clear_graph_def();
  TAGFLOW_RETURN_IF_ERROR(graph_to_proto(graph, chosen->mutable_graph_def())
                              .with_prefix("[graphdef] "));
  TAGFLOW_ASSIGN(const std::string changed, write_message(*proto));
  TAGFLOW_RETURN_IF_ERROR(check_readable(kSavedModel, changed));
  TAGFLOW_RETURN_IF_ERROR(check_new(original, folder));
  // Written next to it, then renamed, so that it is created atomically.
  fs::path whole = fs::absolute(folder).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  constexpr mode_t kMode = 0777;  // reduced by the umask
  TemporaryFile made(whole.native(), TemporaryFile::Kind::kFolder, kMode);
  if (made.error() != 0) return cannot_write(folder, made.error());
  const fs::path temporary = made.path();
  std::deque<UnfinishedFile> unfinished;
  unfinished.emplace_back((temporary / kSavedModel).native());
  std::error_code code;
  Status status = copy_rest(original, temporary, unfinished);
  if (status.ok()) status = replace_file(temporary / kSavedModel, changed);
  made.forget();
  if (status.ok()) {
    fs::rename(temporary, whole, code);
    if (!code) return {};
    status = cannot_write(folder, code.value());
  }
  fs::remove_all(temporary, code);
  return status;
} catch (...) {
  return current_fault("graphdef");
}

}  // namespace tagflow::graph
