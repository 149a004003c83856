#include "graph/file/graphdef.h"

#include <google/protobuf/arena.h>

#include "graph/fault.h"
#include "graph/file/graph_proto.h"
#include "graph/file/wire.h"
#include "graph/proto/graph.pb.h"

namespace tagflow::graph {
namespace {

namespace pb = google::protobuf;

constexpr std::string_view kModule = "[graphdef] ";

template <class T>
Result<T> about_file(Result<T> result) {
  if (result.ok()) return result;
  if (result.status().message().starts_with('[')) return result;
  return std::move(result).status().with_prefix(kModule);
}

}  // namespace

Result<GraphFile> parse_graphdef(std::string_view bytes,
                                 const Limits& limits) try {
  // The paths to nodes: in the graph, and in the library's functions.
  TAGFLOW_RETURN_IF_ERROR(
      check_message(bytes, {{1}, {2, 1, 3}}, "GraphDef", limits));
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "GraphDef", proto));
  return about_file(graph_from_proto(*proto, limits));
} catch (...) {
  return current_fault("graphdef");
}

Result<GraphFile> parse_graphdef_text(std::string_view text,
                                      const Limits& limits) try {
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_text(text, "GraphDef", limits, proto));
  return about_file(graph_from_proto(*proto, limits));
} catch (...) {
  return current_fault("graphdef");
}

Result<Graph> build_graph(GraphFile file) try {
  Graph graph;
  graph.set_producer_version(file.producer);
  graph.library() = std::move(file.library);
  TAGFLOW_RETURN_IF_ERROR(graph.extend(std::move(file.nodes)));
  return graph;
} catch (...) {
  return current_fault("graphdef");
}

Result<Graph> read_graphdef(std::string_view bytes, const Limits& limits) {
  TAGFLOW_ASSIGN(GraphFile file, parse_graphdef(bytes, limits));
  return build_graph(std::move(file));
}

Result<Graph> read_graphdef_text(std::string_view text, const Limits& limits) {
  TAGFLOW_ASSIGN(GraphFile file, parse_graphdef_text(text, limits));
  return build_graph(std::move(file));
}

Result<std::string> write_graphdef(const Graph& graph) try {
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  Status status = graph_to_proto(graph, proto);
  if (!status.ok()) return std::move(status).with_prefix(kModule);
  return write_message(*proto);
} catch (...) {
  return current_fault("graphdef");
}

Result<std::string> write_graphdef_text(const Graph& graph) try {
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  Status status = graph_to_proto(graph, proto);
  if (!status.ok()) return std::move(status).with_prefix(kModule);
  return print_text(*proto);
} catch (...) {
  return current_fault("graphdef");
}

}  // namespace tagflow::graph
