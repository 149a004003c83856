// What a saved model says of its state: how its variables, tables and queues
// get what they hold. Names are as they are in the file: nothing is checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tagflow::graph {

// A file that comes with a model.
struct Asset {
  std::string tensor;  // "node:port": what is fed with the file's path
  std::string file;    // relative to the folder of the model's assets
};

// An object of the program that wrote a model or a checkpoint.
struct SavedObject {
  // The state of an optimizer for one of its variables.
  struct Slot {
    std::string name;
    int variable = 0, slot = 0;  // objects
  };

  bool is_variable = false;
  // Of a variable; those of several may be equal.
  std::string name;
  // Of a checkpoint's variable: the tensor that is its value.
  std::string key;
  // By which it has other objects, and which.
  std::vector<std::pair<std::string, int>> children;
  std::vector<Slot> slots;
};

// Objects are numbered; the first one is the root.
struct ObjectGraph {
  std::vector<SavedObject> objects;
  // By function, the objects that it captures: its calls get them last.
  std::map<std::string, std::vector<int>> captures;
};

// A variable that is a part of another one, which checkpoints have by its name.
struct SavedPart {
  std::string variable;  // the part's node
  std::string whole;
  // Of the whole one, and where in it the part is.
  std::vector<int64_t> shape, begin, size;
};

// Of a MetaGraphDef; empty for a GraphDef.
struct SavedState {
  // The graph's own saver. The node restores all variables from the checkpoint
  // whose prefix the tensor is fed; empty where there is none.
  std::string saver_filename, saver_restore;
  // Writes of V1 checkpoints.
  bool is_saver_v1 = false;
  // Run once, when the variables have their values: a node; or empty.
  std::string init_op;
  std::vector<Asset> assets;
  std::vector<SavedPart> parts;
  ObjectGraph objects;
};

}  // namespace tagflow::graph
