// Matches variables of a graph with values of a checkpoint, by the objects of
// the program that wrote both.
//
// Names are not enough: variables with the same name in the program get
// different names in the graph. Objects of both files are the same if the same
// path leads to them from the root. An object's node is found by the calls of
// functions that capture it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/file/saved_state.h"
#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::graph {

// The checkpoint key under which the objects are stored.
inline constexpr std::string_view kObjectGraphKey =
    "_CHECKPOINTABLE_OBJECT_GRAPH";

// Parses the value of that key. DataLoss if it is not an object graph,
// ResourceExhausted if it has more objects than the limit of nodes.
// Thread-safe.
Result<ObjectGraph> parse_checkpoint_objects(std::string_view bytes);
// Formats a value of that key. It gives the tensor of each object that has a
// key. Thread-safe.
Result<std::string> format_checkpoint_objects(const ObjectGraph& graph);

// For each object of the model, the object of the checkpoint with the same
// path, or for the same slot of the same variable; -1 if there is none.
// Thread-safe.
std::vector<int> same_objects(const ObjectGraph& model,
                              const ObjectGraph& checkpoint);

// The object of a model at a path, "layers/0/kernel", or for a slot,
// "layers/0/kernel/.OPTIMIZER_SLOT/optimizer/m", with names escaped as in the
// keys of TensorFlow's checkpoints; -1 if there is none. An object may have
// several paths. Thread-safe.
int find_object(const ObjectGraph& model, std::string_view path);

struct SavedVariable {
  const Node* node = nullptr;  // a VarHandleOp
  int object = 0;              // of the model
  std::string path;            // from the root: "layers/0/kernel"
  std::string name;            // in the program
  std::string key;             // in the checkpoint; empty if it is not there
};

// The variables that functions of the model capture, in the order of their
// nodes. InvalidArgument if an object, a call or a node does not match the
// objects, or a variable has two keys; ResourceExhausted if their paths are too
// long. Thread-safe.
Result<std::vector<SavedVariable>> captured_variables(
    const Graph& graph, const ObjectGraph& model,
    const ObjectGraph& checkpoint);

}  // namespace tagflow::graph
