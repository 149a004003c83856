// Graphs as files: TensorFlow's GraphDef, binary and as text.
//
// Reading has two halves. parse_*() and load_file() give the nodes as they
// were written, also where an op is unknown; build_graph() makes a Graph of
// them. read_*() and load_graph() do both.
//
// Errors: InvalidArgument or DataLoss for what is malformed, Unimplemented for
// an unknown op (with the nearest name) or a value that no file can hold,
// ResourceExhausted beyond the limits. Messages name node and attribute.
// Thread-safe: functions of their arguments.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/file/queue_runner.h"
#include "graph/file/saved_state.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "graph/limits.h"

namespace tagflow::graph {

// An entry point of a saved model: from its argument names to "node:port".
struct Signature {
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
};

// What a file says, before ops are looked up.
struct GraphFile {
  std::vector<NodeDef> nodes;
  FunctionLibrary library;
  int producer = 0;  // GraphDef's version number
  // Of a MetaGraphDef or SavedModel, by name; empty for a GraphDef.
  std::map<std::string, Signature> signatures;
  // Of the same: who is to fill the queues while they are used.
  std::vector<QueueRunnerDef> queue_runners;
  SavedState state;
};

Result<GraphFile> parse_graphdef(std::string_view bytes,
                                 const Limits& limits = {});
// Protocol buffers' text format.
Result<GraphFile> parse_graphdef_text(std::string_view text,
                                      const Limits& limits = {});
// Chooses by name: "*.pbtxt" and "*.txt" are text, "saved_model.pb" is a
// SavedModel (its first graph; so is a folder that has one), "*.meta" is a
// MetaGraphDef, all else a binary GraphDef. NotFound where there is no such
// file.
Result<GraphFile> load_file(const std::filesystem::path& path,
                            const Limits& limits = {});

// A graph of the nodes, with library and version.
Result<Graph> build_graph(GraphFile file);

Result<Graph> read_graphdef(std::string_view bytes, const Limits& limits = {});
Result<Graph> read_graphdef_text(std::string_view text,
                                 const Limits& limits = {});
Result<Graph> load_graph(const std::filesystem::path& path,
                         const Limits& limits = {});

// The graph in the order of its nodes, with its library; reading it back gives
// an equal graph. The same bytes for the same graph. Unimplemented for a
// constant of handles.
Result<std::string> write_graphdef(const Graph& graph);
Result<std::string> write_graphdef_text(const Graph& graph);
// Text where the name ends in ".pbtxt" or ".txt". Replaces the file as one
// step. Unknown where the system does not let it be written.
Status save_graph(const Graph& graph, const std::filesystem::path& path);
// Writes the SavedModel of the folder `original` to a new folder, with this
// graph in place of the one that load_file() reads. All else is copied: the
// signatures, the values of variables, assets. The folder is there as a whole
// or not at all. AlreadyExists where it is there and not empty, InvalidArgument
// where it would be inside of `original`; else errors as load_file() and
// save_graph().
Status save_model(const Graph& graph, const std::filesystem::path& original,
                  const std::filesystem::path& folder);

}  // namespace tagflow::graph
