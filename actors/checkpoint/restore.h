// Restoring variables from a file: a checkpoint, whoever wrote it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/file/saved_state.h"
#include "graph/status.h"

namespace tagflow::actors {

class Session;

// What was restored.
struct Restored {
  std::string path;           // the prefix of a bundle, or a file
  int64_t step = 0;           // 0 where another program wrote it
  bool counts_steps = false;  // whether the file says the step
  // Names of tensors in the file that are no variables of the graph, without
  // those that every checkpoint of their writer has ("save_counter").
  std::vector<std::string> unused;
  // Where `path` was a folder: for each newer checkpoint that was passed over,
  // what is wrong with it.
  std::vector<std::string> damaged;
};

// What becomes of tensors that are no variables of the graph.
// Refused: they are InvalidArgument.
enum class OtherTensors : uint8_t { kIgnored, kRefused };

// Assigns what the file has to all variables that the session's graph has, and
// restores what random ops go on from, where it has that. `path` is a folder,
// of which the newest complete checkpoint is taken, the prefix of one, or a
// .safetensors file. `model` is what the session's model says, where it has one
// (SavedModel::state()): a file that has objects, too, as of TensorFlow 2, has
// the variables by these, else by their names, or by the paths that lead to the
// objects of the model, as a .safetensors file that was made of such a
// checkpoint. A variable that had no value
// when it was saved stays as it is, and so does one that only the model's own
// saver uses, as Keras 3 has one more for each weight: no file need have those.
// All of the file is in memory meanwhile.
// Snapshots::restore() says what steps that run meanwhile see. Errors, after
// which nothing has changed:
//   NotFound         there is none
//   InvalidArgument  it is of another model: lists the variables that it does
//                    not have, has with another type or shape, and what else
//                    there is; or the objects are not those of the graph
//   DataLoss         it is damaged, or all of the folder are
// REQUIRES: as for Session::run().
Result<Restored> restore_checkpoint(
    const Session& session, const std::string& path,
    const graph::SavedState& model = {},
    OtherTensors others = OtherTensors::kIgnored);

}  // namespace tagflow::actors
