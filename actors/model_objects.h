// Which object of the program that wrote a model each of its variables is.
//
// TensorFlow 2 restores variables by objects: an object is the same where the
// same path leads to it from the root, whatever the graph calls its variable.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "actors/snapshot.h"
#include "devices/checkpoint/tensor_file.h"
#include "graph/object_graph.h"
#include "graph/status.h"

namespace tagflow::actors {

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
  // the objects are not those of the graph.
  static Result<ModelObjects> make(const graph::Graph& graph,
                                   graph::ObjectGraph objects);

  // Where the file has the variables that are objects; empty where the model or
  // the file says nothing of objects. DataLoss or InvalidArgument where those
  // of the file cannot be read.
  Result<Places> places_in(const checkpoint::TensorFile& file) const;
  // Under which name a file of ours has the variable: where it is an object, as
  // TensorFlow has it, "PATH/.ATTRIBUTES/VARIABLE_VALUE"; else its own.
  const std::string& key_of(const std::string& variable) const;
  // What such a file, which has the snapshot's variables, says of objects: its
  // tensor graph::kObjectGraphKey. Not valid where there is nothing to say.
  Result<Tensor> describe(const Snapshot& snapshot) const;

 private:
  struct Variable {
    int object = 0;
    std::string path, key;
  };
  graph::ObjectGraph objects_;
  std::map<std::string, Variable, std::less<>> variables_;  // by their names
};

// Of the value of graph::kObjectGraphKey in the file of that path. DataLoss or
// InvalidArgument where it cannot be read.
Result<graph::ObjectGraph> parse_objects(const Tensor& value,
                                         std::string_view path);

}  // namespace tagflow::actors
