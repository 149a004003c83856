// Restores variables from a checkpoint of any program.
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
  int64_t step = 0;           // 0 if another program wrote it
  bool counts_steps = false;  // whether the file has the step
  // Names of tensors in the file that are not variables of the graph, without
  // those that every checkpoint of its writer has ("save_counter").
  std::vector<std::string> unused;
  // If `path` is a folder: the errors of newer checkpoints that were skipped.
  std::vector<std::string> damaged;
  // Why this process has read what workers were to read; empty if they did, or
  // were not to.
  std::string not_by_workers;
};

// How to treat tensors that are not variables of the graph. kRefused: they are
// InvalidArgument.
enum class OtherTensors : uint8_t { kIgnored, kRefused };

// Assigns the values in the file to all variables of the session's graph, and
// restores the state of random ops if the file has it. `path` is the prefix of
// a checkpoint, a .safetensors file, or a folder, whose newest complete
// checkpoint is used. `model` is the state of the session's model, if it has
// one (SavedModel::state()). If the model and the file have objects, as in
// TensorFlow 2, variables are found by these; otherwise by their names, or by
// the paths of the model's objects, as in a .safetensors file that was made
// from such a checkpoint. A variable that had no value when it was saved is not
// changed. Nor is one that only the model's own saver uses, such as Keras 3
// makes for each weight: files need not have those. The whole file is in memory
// meanwhile.
// Snapshots::restore() says which values concurrent steps see. Errors, after
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
