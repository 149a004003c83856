// Graph files: TensorFlow's GraphDef, binary and as text.
//
// Reading has two steps. parse_*() and load_file() return the nodes as they are
// in the file, even if an op is unknown; build_graph() makes a Graph of them.
// read_*() and load_graph() do both.
//
// Errors: InvalidArgument or DataLoss for malformed input, Unimplemented for an
// unknown op (with the nearest name) or a value that no file can hold,
// ResourceExhausted beyond the limits. Messages name node and attribute.
// Thread-safe.
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

// An entry point of a saved model: maps its argument names to "node:port".
struct Signature {
  // What the file says of a tensor, which need not be true.
  struct Info {
    DataType dtype = DataType::kInvalid;
    PartialShape shape;
  };

  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
  std::string method;                 // "tensorflow/serving/predict"
  std::map<std::string, Info> infos;  // by "node:port"
};

// The contents of a file, before ops are looked up.
struct GraphFile {
  std::vector<NodeDef> nodes;
  FunctionLibrary library;
  int producer = 0;  // GraphDef's version number
  // Of a MetaGraphDef or SavedModel, by name; empty for a GraphDef.
  std::map<std::string, Signature> signatures;
  // Of a MetaGraphDef or SavedModel: they fill the queues during runs.
  std::vector<QueueRunnerDef> queue_runners;
  SavedState state;
};

Result<GraphFile> parse_graphdef(std::string_view bytes,
                                 const Limits& limits = {});
// Protocol buffers' text format.
Result<GraphFile> parse_graphdef_text(std::string_view text,
                                      const Limits& limits = {});
// Chooses the format by name: "saved_model.pb", "saved_model.pbtxt" or a folder
// that contains one of them is a SavedModel (the graph that serves is read),
// other "*.pbtxt" and "*.txt" are GraphDefs as text, "*.meta" is a
// MetaGraphDef, anything else a binary GraphDef. NotFound if there is no such
// file.
Result<GraphFile> load_file(const std::filesystem::path& path,
                            const Limits& limits = {});

// Makes a graph of the nodes, with library and version. It asks the budget.
Result<Graph> build_graph(GraphFile file, Budget* budget = nullptr);

Result<Graph> read_graphdef(std::string_view bytes, const Limits& limits = {});
Result<Graph> read_graphdef_text(std::string_view text,
                                 const Limits& limits = {});
Result<Graph> load_graph(const std::filesystem::path& path,
                         const Limits& limits = {});

// The graph in the order of its nodes, with its library; reading it gives an
// equal graph. Deterministic. Unimplemented for a constant of handles;
// ResourceExhausted, InvalidArgument or DataLoss if readers would refuse it:
// beyond their default limits, or with a string that is not UTF-8.
Result<std::string> write_graphdef(const Graph& graph);
Result<std::string> write_graphdef_text(const Graph& graph);
// Writes text if the name ends in ".pbtxt" or ".txt". Replaces the file
// atomically. Errors of write_graphdef(); Unknown if the system does not allow
// writing it.
Status save_graph(const Graph& graph, const std::filesystem::path& path);
// Writes the SavedModel of the folder `original` to a new folder, with this
// graph instead of the one that load_file() reads. Everything else is copied:
// signatures, values of variables, assets. The folder is created atomically.
// AlreadyExists if it exists and is not empty, InvalidArgument if it would be
// inside `original`, PermissionDenied if a link in `original` leads out of it;
// otherwise the errors of load_file() and save_graph().
Status save_model(const Graph& graph, const std::filesystem::path& original,
                  const std::filesystem::path& folder);

}  // namespace tagflow::graph
