#include "graph/file/graphdef.h"

#include <google/protobuf/arena.h>

#include "graph/budget.h"
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

// The bytes that format(message) makes of the graph, for a file of that name.
template <class Format>
Result<std::string> write(const Graph& graph, const char* name,
                          const Format& format) {
  Result<std::string> bytes = std::string();
  {
    pb::Arena arena;
    auto* proto = pb::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
    Status status = graph_to_proto(graph, proto);
    if (!status.ok()) return std::move(status).with_prefix(kModule);
    bytes = format(*proto);
  }
  if (bytes.ok()) TAGFLOW_RETURN_IF_ERROR(check_readable(name, *bytes));
  return bytes;
}

}  // namespace

Result<GraphFile> parse_graphdef(std::string_view bytes,
                                 const Limits& limits) try {
  // The paths to nodes: in the graph, and in the library's functions.
  TAGFLOW_RETURN_IF_ERROR(
      check_message(bytes, {{1}, {2, 1, 3}}, "GraphDef", limits));
  pb::Arena arena;
  auto* proto = pb::Arena::CreateMessage<tensorflow::GraphDef>(&arena);
  TAGFLOW_RETURN_IF_ERROR(parse_message(bytes, "GraphDef", proto, limits));
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

Result<Graph> build_graph(GraphFile file, Budget* budget) try {
  Graph graph;
  graph.set_producer_version(file.producer);
  graph.library() = std::move(file.library);
  begin_stage(budget, "the graph was built");
  TAGFLOW_RETURN_IF_ERROR(check_budget(budget, file.nodes.size()));
  TAGFLOW_RETURN_IF_ERROR(graph.extend(std::move(file.nodes)));
  return graph;
} catch (...) {
  return current_fault("graphdef");
}

Result<Graph> read_graphdef(std::string_view bytes, const Limits& limits) {
  TAGFLOW_ASSIGN(GraphFile file, parse_graphdef(bytes, limits));
  return build_graph(std::move(file), limits.budget);
}

Result<Graph> read_graphdef_text(std::string_view text, const Limits& limits) {
  TAGFLOW_ASSIGN(GraphFile file, parse_graphdef_text(text, limits));
  return build_graph(std::move(file), limits.budget);
}

Result<std::string> write_graphdef(const Graph& graph) try {
  return write(graph, "graph.pb", write_message);
} catch (...) {
  return current_fault("graphdef");
}

Result<std::string> write_graphdef_text(const Graph& graph) try {
  return write(graph, "graph.pbtxt", print_text);
} catch (...) {
  return current_fault("graphdef");
}

}  // namespace tagflow::graph
