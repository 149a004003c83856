// tagflow.Graph, the class of Python.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/file/graphdef.h"
#include "graph/graph.h"

namespace tagflow::python {

// A graph, and what a file says of it beside its nodes. The graph may grow, as
// long as no session extends itself by it at the same time.
struct GraphObject {
  graph::Graph graph;
  std::map<std::string, graph::Signature> signatures;
  std::vector<graph::QueueRunnerDef> queue_runners;
  graph::SavedState state;
  std::string path;  // of the file; empty: there is none
};

}  // namespace tagflow::python
