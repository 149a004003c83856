// Properties of every graph file that is accepted; shared by the targets of
// both formats.
#pragma once

#include <cstdlib>
#include <string>

#include "graph/analysis/prune.h"
#include "graph/analysis/validate.h"
#include "graph/file/graphdef.h"

namespace tagflow::graph {

// Small enough that an accepted file cannot use up the fuzzer's memory.
inline Limits fuzz_limits() {
  Limits limits;
  limits.max_nodes = 2000;
  limits.max_tensor_bytes = int64_t(1) << 24;
  return limits;
}

// A graph that can be built can be written, read and written again, with the
// same bytes; a valid one is still valid then.
inline void check_graph(const Graph& graph) {
  const bool valid = validate(graph).ok();
  const Result<std::string> bytes = write_graphdef(graph);
  if (!bytes.ok()) std::abort();
  const Result<Graph> again = read_graphdef(*bytes);
  if (!again.ok() || validate(*again).ok() != valid) std::abort();
  for (const Node* node : graph.nodes()) {
    const Node* twin = again->find(node->name());
    if (twin == nullptr) std::abort();
    if (!(Graph::to_def(*node) == Graph::to_def(*twin))) std::abort();
  }
  if (!graph.nodes().empty()) {
    Node* last = graph.nodes().back();
    const NodeSet needed = prune(graph, {}, {&last, 1}, {});
    if (!needed.contains(*last) || needed.size() > graph.size()) std::abort();
  }
}

inline void check_file(const Result<GraphFile>& file) {
  if (!file.ok()) {
    if (file.status().message().empty()) std::abort();
    return;
  }
  const Result<Graph> graph = build_graph(*file);
  if (graph.ok()) {
    check_graph(*graph);
  } else if (graph.status().message().empty()) {
    std::abort();
  }
}

}  // namespace tagflow::graph
