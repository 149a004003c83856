// The description of a saved model's state: how its variables, tables and
// queues are filled. Names are as they are in the file and are not checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tagflow::graph {

// A file that comes with a model.
struct Asset {
  std::string tensor;  // "node:port": is fed with the file's path
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
  // Of a variable; several may have the same name.
  std::string name;
  // Of a checkpoint's variable: the key of the tensor with its value.
  std::string key;
  // Names and numbers of the objects that it refers to.
  std::vector<std::pair<std::string, int>> children;
  std::vector<Slot> slots;
};

// Objects are numbered; the first one is the root.
struct ObjectGraph {
  std::vector<SavedObject> objects;
  // Maps a function to the objects that it captures: its last arguments.
  std::map<std::string, std::vector<int>> captures;
};

// A variable that is a slice of a larger one; checkpoints use that one's name.
struct SavedPart {
  std::string variable;  // the part's node
  std::string whole;
  // Shape of the whole variable, and the slice in it.
  std::vector<int64_t> shape, begin, size;
};

// Of a MetaGraphDef; empty for a GraphDef.
struct SavedState {
  // The graph's own saver. The tensor is fed the prefix of a checkpoint, and
  // the node restores all variables from it; empty if there is none.
  std::string saver_filename, saver_restore;
  // Whether it writes V1 checkpoints.
  bool is_saver_v1 = false;
  // A node that runs once after the variables are restored; or empty.
  std::string init_op;
  std::vector<Asset> assets;
  std::vector<SavedPart> parts;
  ObjectGraph objects;
};

}  // namespace tagflow::graph
