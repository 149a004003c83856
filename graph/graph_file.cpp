// The functions of graph/graphdef.h that touch the file system.
#include <fmt/ranges.h>
#include <google/protobuf/arena.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "graph/fault.h"
#include "graph/graph_proto.h"
#include "graph/graphdef.h"
#include "graph/proto/meta_graph.pb.h"
#include "graph/wire.h"

namespace tagflow::graph {
namespace {

namespace fs = std::filesystem;
namespace pb = google::protobuf;

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
    return invalid_argument("[graphdef] \"{}\" is no regular file",
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
  // It would be a graph without nodes; nobody writes one to read it again.
  if (bytes.empty())
    return error(Code::kDataLoss, "[graphdef] \"{}\" is empty", path.string());
  return bytes;
}

// What a file may have as many of as of nodes: those of the program.
constexpr const char* kObjects = "objects and references to them";

Result<GraphFile> parse_meta_graph(std::string_view bytes,
                                   const Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(
      check_message(bytes, {{2, 1}, {2, 2, 1, 3}}, "MetaGraphDef", limits));
  TAGFLOW_RETURN_IF_ERROR(check_count(bytes, {{7, 1}, {7, 1, 1}, {7, 1, 3}},
                                      kObjects, limits.max_nodes));
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::MetaGraphDef>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "MetaGraphDef", proto));
  return meta_graph_from_proto(*proto, limits);
}

// Of several graphs of a model the one for inference, by its tag.
Result<const tensorflow::MetaGraphDef*> graph_to_serve(
    const tensorflow::SavedModel& model) {
  if (model.meta_graphs_size() == 1) return &model.meta_graphs(0);
  std::string texts;
  for (const tensorflow::MetaGraphDef& graph : model.meta_graphs()) {
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

Result<GraphFile> parse_saved_model(std::string_view bytes,
                                    const Limits& limits) {
  TAGFLOW_RETURN_IF_ERROR(
      check_message(bytes, {{2, 2, 1}, {2, 2, 2, 1, 3}}, "SavedModel", limits));
  TAGFLOW_RETURN_IF_ERROR(check_count(bytes,
                                      {{2, 7, 1}, {2, 7, 1, 1}, {2, 7, 1, 3}},
                                      kObjects, limits.max_nodes));
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::SavedModel>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "SavedModel", proto));
  if (proto->meta_graphs_size() == 0)
    return invalid_argument("the SavedModel has no graph");
  TAGFLOW_ASSIGN(const auto* chosen, graph_to_serve(*proto));
  return meta_graph_from_proto(*chosen, limits);
}

Result<GraphFile> parse_file(const fs::path& path, std::string_view bytes,
                             const Limits& limits) {
  if (is_text_name(path)) return parse_graphdef_text(bytes, limits);
  if (path.extension() == ".meta") return parse_meta_graph(bytes, limits);
  if (path.filename() == "saved_model.pb")
    return parse_saved_model(bytes, limits);
  return parse_graphdef(bytes, limits);
}

Status cannot_write(const fs::path& path, std::string_view why) {
  return error(Code::kUnknown, "[graphdef] cannot write \"{}\": {}",
               path.string(), why);
}

}  // namespace

Result<GraphFile> load_file(const fs::path& path, const Limits& limits) try {
  std::error_code code;
  const fs::path file =
      fs::is_directory(path, code) ? path / "saved_model.pb" : path;
  TAGFLOW_ASSIGN(const std::string bytes, read_bytes(file, limits));
  Result<GraphFile> parsed = parse_file(file, bytes, limits);
  if (parsed.ok()) return parsed;
  return std::move(parsed).status().with_prefix(path.string() + ": ");
} catch (...) {
  return current_fault("graphdef");
}

Result<Graph> load_graph(const fs::path& path, const Limits& limits) try {
  TAGFLOW_ASSIGN(GraphFile file, load_file(path, limits));
  Result<Graph> graph = build_graph(std::move(file));
  if (graph.ok()) return graph;
  return std::move(graph).status().with_prefix(path.string() + ": ");
} catch (...) {
  return current_fault("graphdef");
}

Status save_graph(const Graph& graph, const fs::path& path) try {
  TAGFLOW_ASSIGN(const std::string bytes, is_text_name(path)
                                              ? write_graphdef_text(graph)
                                              : write_graphdef(graph));
  // Whoever reads meanwhile sees the old file or the new one.
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), getpid());
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), std::streamsize(bytes.size()));
  file.close();
  std::error_code code;
  if (!file) {
    const std::string why =
        errno == 0 ? "the system refuses" : std::strerror(errno);
    fs::remove(temporary, code);
    return cannot_write(path, why);
  }
  fs::rename(temporary, path, code);
  if (!code) return {};
  const std::string why = code.message();
  fs::remove(temporary, code);
  return cannot_write(path, why);
} catch (...) {
  return current_fault("graphdef");
}

}  // namespace tagflow::graph
