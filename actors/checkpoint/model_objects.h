// Which object of the program that wrote a model each of its variables is.
//
// TensorFlow 2 restores variables by objects: an object is the same where the
// same path leads to it from the root, whatever the graph calls its variable.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/graph_variables.h"
#include "actors/checkpoint/snapshot.h"
#include "devices/checkpoint/tensor_file.h"
#include "graph/file/object_graph.h"
#include "graph/file/saved_state.h"
#include "graph/status.h"

namespace tagflow::actors {

// Note [Spare variables]
// Keras 3 has TensorFlow write a variable more for each weight ("Variable",
// "Variable_1", ...), and where the program's module names its weights itself,
// two: no step reads them. A variable is spare where the model says of objects,
// none of its functions captures the variable, and either the model's own saver
// restores it, or it is read for nothing but the first value of such a one.
// Signatures and the init op of such a model use variables through these
// functions alone. Checkpoints of the program have no spare variable, so none
// is demanded of a file, and none is saved. A variable that a session was
// extended with is no spare one: neither the saver nor such an initializer
// knows it.

// The objects of a model, and which of its variables they are. Thread-safe.
class ModelObjects {
 public:
  struct Place {
    std::string key;   // of the file's tensor; empty where it has none
    std::string path;  // of the object
  };
  // By the names of variables.
  using Places = std::map<std::string, Place, std::less<>>;

  // Of a model that says nothing of objects.
  ModelObjects() = default;
  // Of the variables that the model's functions capture. InvalidArgument where
  // the objects are not those of the graph; NotFound where the graph lacks the
  // model's own saver.
  static Result<ModelObjects> make(const graph::Graph& graph,
                                   graph::SavedState model);

  // Note [Spare variables].
  bool is_spare(const std::string& variable) const {
    return spare_.contains(variable);
  }
  // Whether a tensor of that key is an object of the model, which may be one
  // that only spare variables have.
  bool has_object(std::string_view key) const;
  // Those of the graph, without the spare ones.
  std::vector<GraphVariable> without_spare(
      std::vector<GraphVariable> variables) const;

  // Where the file has the variables that are objects; empty where the model
  // says nothing of objects. A file that says nothing of them, either, as none
  // of safetensors does, has a variable by a key of TensorFlow's, which is a
  // path of the object and "/.ATTRIBUTES/VARIABLE_VALUE", else by the
  // variable's name, else by a path alone. DataLoss or InvalidArgument where
  // the objects of the file cannot be read.
  Result<Places> places_in(const checkpoint::TensorFile& file) const;
  // Under which name a file of ours has the variable: where it is an object, as
  // TensorFlow has it, "PATH/.ATTRIBUTES/VARIABLE_VALUE"; else its own. Each
  // has another one.
  const std::string& key_of(const std::string& variable) const;
  // What such a file, which has the snapshot's variables, says of objects: its
  // tensor graph::kObjectGraphKey. Not valid where there is nothing to say.
  Result<Tensor> describe(const Snapshot& snapshot) const;

 private:
  Places places_by_names(const checkpoint::TensorFile& file) const;

  struct Variable {
    int object = 0;
    std::string path, key;
  };
  graph::ObjectGraph objects_;
  std::map<std::string, Variable, std::less<>> variables_;  // by their names
  std::set<std::string> spare_;
};

// The names of the variables that the graph's own saver restores; none where it
// has no saver. NotFound where the graph lacks the saver's node. Thread-safe.
Result<std::set<std::string>> variables_of_saver(
    const graph::Graph& graph, const graph::SavedState& model);

// Of the value of graph::kObjectGraphKey in the file of that path. DataLoss or
// InvalidArgument where it cannot be read.
Result<graph::ObjectGraph> parse_objects(const Tensor& value,
                                         std::string_view path);

}  // namespace tagflow::actors
