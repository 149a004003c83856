// ModelObjects: the objects of the program that wrote a model, and their
// variables.
//
// TensorFlow 2 restores variables by objects: two objects are the same if the
// same path leads to them from the root, regardless of the name of the variable
// in the graph.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/graph_variables.h"
#include "actors/checkpoint/snapshot.h"
#include "devices/files/tensor_file.h"
#include "graph/file/object_graph.h"
#include "graph/file/saved_state.h"
#include "graph/status.h"

namespace tagflow::actors {

// Note [Spare variables]
// For each weight, Keras 3 makes TensorFlow write one more variable
// ("Variable", "Variable_1", ...), or two more if the program's module names
// its weights itself. No step reads these. A variable is spare if the model has
// objects, none of its functions captures the variable, and either the model's
// own saver restores it, or it is read only for the initial value of such a
// variable. Signatures and the init op of such a model use variables through
// these functions only. Checkpoints of the program have no spare variables, so
// no file needs them, and none is saved. A variable that was added by extend()
// is not spare: neither the saver nor such an initializer uses it.

// The objects of a model, and their variables. It also knows which variables
// are parts of larger ones. Thread-safe.
class ModelObjects {
 public:
  struct Place {
    std::string key;   // of the file's tensor; empty if it has none
    std::string path;  // of the object; empty for a part
    // Of a part: the shape of the whole variable, and the slice in it.
    std::optional<checkpoint::ShapeAndSlice> part;
  };
  // By the names of variables.
  using Places = std::map<std::string, Place, std::less<>>;

  // For a model without objects.
  ModelObjects() = default;
  // Finds the objects of the variables that the model's functions capture.
  // InvalidArgument if the objects are not those of the graph; NotFound if the
  // graph lacks the model's own saver.
  static Result<ModelObjects> make(const graph::Graph& graph,
                                   graph::SavedState model);

  // Note [Spare variables].
  bool is_spare(const std::string& variable) const {
    return spare_.contains(variable);
  }
  // Whether a tensor of that key is an object of the model, including the
  // objects of spare variables.
  bool has_object(std::string_view key) const;
  // Removes the spare ones from the variables of the graph.
  std::vector<GraphVariable> without_spare(
      std::vector<GraphVariable> variables) const;

  // The places in the file of the variables that are objects, and of those that
  // are parts of a larger one, if the file has that one instead. If the file
  // has no objects, as in safetensors, a variable is found by TensorFlow's key,
  // which is a path of the object and "/.ATTRIBUTES/VARIABLE_VALUE"; otherwise
  // by the variable's name; otherwise by a path. DataLoss or InvalidArgument if
  // the objects of the file cannot be read.
  Result<Places> places_in(const checkpoint::TensorFile& file) const;
  // The key of the variable in our files: for an object, it is TensorFlow's key
  // "PATH/.ATTRIBUTES/VARIABLE_VALUE"; otherwise it is the variable's name.
  // Keys are unique.
  const std::string& key_of(const std::string& variable) const;
  // The tensor graph::kObjectGraphKey of a file with the snapshot's variables,
  // which describes the objects. Not valid if there are no objects.
  Result<Tensor> describe(const Snapshot& snapshot) const;

 private:
  Result<Places> places_of_objects(const checkpoint::TensorFile& file) const;
  Places places_by_names(const checkpoint::TensorFile& file) const;

  struct Variable {
    int object = 0;
    std::string path, key;
  };
  graph::ObjectGraph objects_;
  std::map<std::string, Variable, std::less<>> variables_;  // by their names
  std::set<std::string> spare_;
  Places parts_;  // of files that have the whole variables
};

// The names of the variables that the graph's own saver restores; none if it
// has no saver. NotFound if the graph lacks the saver's node. Thread-safe.
Result<std::set<std::string>> variables_of_saver(
    const graph::Graph& graph, const graph::SavedState& model);

// Parses the value of graph::kObjectGraphKey in the file of that path. DataLoss
// or InvalidArgument if it cannot be read.
Result<graph::ObjectGraph> parse_objects(const Tensor& value,
                                         std::string_view path);

}  // namespace tagflow::actors
