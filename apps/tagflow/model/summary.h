// A summary of a graph, as text and as JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {

// A tensor of the graph: "name:0", "float", "[2,?]".
struct TensorNote {
  std::string name;
  std::string dtype;
  std::string shape;
};

// The note of an existing tensor; a Placeholder has the shape that it declares.
TensorNote note_of(const graph::Endpoint& endpoint);

// A loop, as described by its control-flow nodes.
struct FrameNote {
  std::string name;
  int parent = 0;  // among the summary's frames; 0 is the root
  int depth = 0;
  size_t nodes = 0;
  int64_t parallel_iterations = 1;
  std::string condition;               // the input of its LoopCond; or ""
  std::vector<TensorNote> variables;   // by their Merges
  std::vector<TensorNote> invariants;  // the same in every iteration
  std::vector<TensorNote> results;     // of its Exits
};

// A node that calls functions: a call, a loop or a conditional.
struct CallNote {
  std::string name;
  std::string op;
  std::vector<std::string> functions;
};

struct FunctionNote {
  std::string name;
  size_t nodes = 0;
  bool is_reached = true;  // by the summarised nodes
  std::vector<CallNote> calls;
  std::vector<std::string> inputs;  // "x: float"
  std::vector<std::string> outputs;
};

// A signature of a saved model: its names for tensors.
struct SignatureNote {
  std::string name;
  bool is_chosen = false;  // --feed and --fetch accept its names
  std::vector<std::pair<std::string, TensorNote>> inputs;
  std::vector<std::pair<std::string, TensorNote>> outputs;
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
  std::vector<TensorNote> unconsumed;  // outputs without readers
  std::vector<std::string> sinks;      // nodes without outputs or readers
  std::vector<FrameNote> frames;       // parents first; 0 is the root
  // Functional loops and conditionals, here and in functions.
  size_t functional_loops = 0;
  size_t functional_conditionals = 0;
  std::vector<CallNote> calls;
  std::vector<FunctionNote> functions;
  std::vector<SignatureNote> signatures;
  std::vector<std::string> errors;  // why nodes cannot run
  std::vector<std::string> warnings;
};

// Summarises nodes of `graph`, whose frames are given. The caller adds
// signatures and errors.
GraphSummary summarise(const graph::Graph& graph,
                       std::span<graph::Node* const> nodes,
                       const graph::FrameMap& frames);

// Lines of text; long lists are shortened.
std::string format_summary(const GraphSummary& summary);
// One JSON object, with everything.
std::string format_summary_json(const GraphSummary& summary);

}  // namespace tagflow::apps
