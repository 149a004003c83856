// What a graph is made of, for people and for scripts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/frames.h"
#include "graph/graphdef.h"

namespace tagflow::apps {

// A tensor of the graph: "name:0", "float", "[2,?]".
struct TensorNote {
  std::string name;
  std::string dtype;
  std::string shape;
};

// A loop, as its control-flow nodes tell.
struct FrameNote {
  std::string name;
  int parent = 0;  // among the summary's frames; 0 is the root
  int depth = 0;
  size_t nodes = 0;
  int64_t parallel_iterations = 1;
  std::string condition;               // what its LoopCond reads; or nothing
  std::vector<TensorNote> variables;   // what goes round, by its Merge
  std::vector<TensorNote> invariants;  // what every iteration sees
  std::vector<TensorNote> results;     // what leaves
};

struct FunctionNote {
  std::string name;
  size_t nodes = 0;
  std::vector<std::string> inputs;  // "x: float"
  std::vector<std::string> outputs;
};

struct GraphSummary {
  size_t nodes = 0;
  size_t data_edges = 0;
  size_t control_edges = 0;
  std::map<std::string, size_t> ops;
  std::map<std::string, size_t> dtypes;  // of outputs
  std::map<std::string, size_t> devices;
  size_t constants = 0;
  size_t constant_bytes = 0;
  TensorNote largest_constant;
  std::vector<TensorNote> inputs;      // Placeholders
  std::vector<TensorNote> unconsumed;  // outputs that nobody reads
  std::vector<std::string> sinks;      // nodes without outputs or readers
  std::vector<FrameNote> frames;       // parents first; 0 is the root
  std::vector<FunctionNote> functions;
  std::vector<std::string> warnings;
};

// Of the nodes, which are of `graph`, with the frames of that.
GraphSummary summarise(const graph::Graph& graph,
                       std::span<graph::Node* const> nodes,
                       const graph::FrameMap& frames);

// Lines for people; long lists are shortened.
std::string format_summary(const GraphSummary& summary);
// One JSON object, with everything.
std::string format_summary_json(const GraphSummary& summary);

}  // namespace tagflow::apps
