// Snapshots in files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/graph_variables.h"
#include "actors/checkpoint/model_objects.h"
#include "actors/checkpoint/restore.h"
#include "actors/checkpoint/snapshot.h"
#include "devices/checkpoint/atomic_file.h"
#include "graph/status.h"

namespace tagflow::actors {

// Note [What a checkpoint holds]
// Each variable is a tensor of its own name, as whoever else reads checkpoints
// expects; of a model that TensorFlow 2 wrote, a tensor of its object, and with
// them the objects, by which TensorFlow restores variables, and so do we. What
// else a training needs to go on is in tensors whose names no node can have:
//
//   _tagflow/step         int64    how many steps there were
//   _tagflow/seed         uint64   of random ops without one of their own
//   _tagflow/runs/NODE    int64    in how many runs a random op took part
//   _tagflow/unset/NAME   bool     of a variable that had no value
//
// Without "unset", who restores could not tell a variable that had no
// value from one of another model.

// Of steps, and of runs: a file cannot say so many that those that follow could
// not be counted.
inline constexpr int64_t kMostSteps = int64_t{1} << 53;

// Every checkpoint of ours has this tensor, and no other program's does.
inline constexpr std::string_view kStepKey = "_tagflow/step";

// A snapshot, and when it was taken.
struct Checkpoint {
  Snapshot snapshot;
  int64_t step = 0;
};

// Writes and publishes a bundle of the variables that `names` names. Lets go of
// each when it is written, and notes those without a value. `objects` are those
// of the graph's model.
// InvalidArgument for a variable whose tensor would have a name of ours; errors
// of BundleWriter.
Status write_checkpoint(const std::string& prefix, Checkpoint checkpoint,
                        std::span<const std::string> names,
                        const ModelObjects& objects,
                        const checkpoint::WriteOptions& options);

// What a file has for the variables, which are those of a graph without the
// spare ones of its model: by their objects, where model and file have these,
// else by their names. Checked as a whole before anything is read: see
// restore_checkpoint(). Of a folder, the newest of which all data are as their
// checksums say.
struct LoadedCheckpoint {
  Checkpoint checkpoint;
  Restored restored;
  std::vector<std::string> passed_over;  // prefixes of damaged ones
};
Result<LoadedCheckpoint> load_checkpoint(
    const std::string& path, std::span<const GraphVariable> variables,
    const ModelObjects& objects, OtherTensors others);

}  // namespace tagflow::actors
