// Which variable of a graph has which value of a checkpoint, by the objects of
// the program that wrote both.
//
// Names do not say it: variables may have the same name in the program, and
// then get other ones in the graph. An object is the same in both files where
// the same path leads to it from the root. Which node it is, is said by the
// calls of functions that capture it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "graph/file/saved_state.h"
#include "graph/graph.h"
#include "graph/status.h"

namespace tagflow::graph {

// The key under which a checkpoint has its objects.
inline constexpr std::string_view kObjectGraphKey =
    "_CHECKPOINTABLE_OBJECT_GRAPH";

// The objects of a checkpoint, of the value of that key. DataLoss where it is
// none, ResourceExhausted where there are more than nodes may be. Thread-safe.
Result<ObjectGraph> parse_checkpoint_objects(std::string_view bytes);
// A value of that key, which says of the objects that have a key which tensor
// is theirs. Thread-safe.
Result<std::string> format_checkpoint_objects(const ObjectGraph& graph);

// Of each object of the model, that of the checkpoint to which the same path
// leads, or which is the same slot of the same variable; -1 where there is
// none. Thread-safe.
std::vector<int> same_objects(const ObjectGraph& model,
                              const ObjectGraph& checkpoint);

// The object of a model to which a path leads, "layers/0/kernel", or, of a
// slot, "layers/0/kernel/.OPTIMIZER_SLOT/optimizer/m", escaped as TensorFlow
// escapes names in the keys of checkpoints; -1 where there is none. An object
// may have several paths. Thread-safe.
int find_object(const ObjectGraph& model, std::string_view path);

struct SavedVariable {
  const Node* node = nullptr;  // a VarHandleOp
  int object = 0;              // of the model
  std::string path;            // that leads to it: "layers/0/kernel"
  std::string name;            // in the program
  std::string key;  // of the checkpoint; empty where it does not have it
};

// Of the variables that functions of the model capture, in the order of their
// nodes. InvalidArgument where an object, a call or a node is not what the
// objects say, or a variable has two keys; ResourceExhausted where their paths
// are too long. Thread-safe.
Result<std::vector<SavedVariable>> captured_variables(
    const Graph& graph, const ObjectGraph& model,
    const ObjectGraph& checkpoint);

}  // namespace tagflow::graph
