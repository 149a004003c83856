// Checkpoints: snapshots in files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/checkpoint/graph_variables.h"
#include "actors/checkpoint/model_objects.h"
#include "actors/checkpoint/restore.h"
#include "actors/checkpoint/snapshot.h"
#include "actors/checkpoint/stored_variables.h"
#include "devices/files/atomic_file.h"
#include "devices/files/bundle_writer.h"
#include "graph/status.h"

namespace tagflow::actors {

// Note [What a checkpoint holds]
// Each variable is a tensor with the variable's name, as other readers of
// checkpoints expect. For a model that TensorFlow 2 wrote, it is a tensor with
// the key of its object, and the checkpoint also contains the objects, by which
// TensorFlow restores variables, and so do we. Everything else that a training
// needs to continue is in tensors whose names no node can have:
//
//   _tagflow/step int64 how many steps there were
//   _tagflow/seed         uint64   of random ops without one of their own
//   _tagflow/runs/NODE    int64    in how many runs a random op took part
//   _tagflow/unset/NAME   bool     of a variable that had no value
//   _tagflow/contents/N   string   of a queue, a table and the like: Note
//                                  [Saved contents] in
//                                  devices/state/saved_contents.h
//
// Without "unset", a restore could not distinguish a variable that had no value
// from a variable of another model.

// The largest number of steps or runs in a file. Larger numbers are rejected,
// so that counting on from there does not overflow.
inline constexpr int64_t kMostSteps = int64_t{1} << 53;

// Every checkpoint of tagflow has this tensor, and no other program writes it.
inline constexpr std::string_view kStepKey = "_tagflow/step";

// A snapshot, and when it was taken.
struct Checkpoint {
  Snapshot snapshot;
  int64_t step = 0;
};

// Writes a bundle of the variables in `names`, which is finished, but not
// published. Releases each variable once it is written, and marks those without
// a value. `objects` are those of the graph's model; `shards` have the
// variables that workers held. InvalidArgument if a variable's tensor would
// have a reserved name; errors of BundleWriter.
Result<std::unique_ptr<checkpoint::BundleWriter>> prepare_checkpoint(
    const std::string& prefix, Checkpoint checkpoint,
    std::span<const std::string> names, const ModelObjects& objects,
    std::vector<checkpoint::ForeignShard> shards,
    const checkpoint::WriteOptions& options);

// A checkpoint that was read for `variables`, which are those of a graph
// without the spare ones of its model. Variables are found by their objects if
// model and file have these, otherwise by their names. The file is checked as a
// whole before any value is read: see restore_checkpoint(). In a folder, it is
// the newest checkpoint whose data match their checksums. Variables of
// `readers` are not read: only the places of their values are known.
struct LoadedCheckpoint {
  Checkpoint checkpoint;
  StoredVariables stored;  // which are left to their readers
  Restored restored;
  std::vector<std::string> passed_over;  // prefixes of damaged ones
};
Result<LoadedCheckpoint> load_checkpoint(
    const std::string& path, std::span<const GraphVariable> variables,
    const ModelObjects& objects, OtherTensors others,
    checkpoint::FileSystem& files = checkpoint::local_files(),
    const Readers& readers = {});

}  // namespace tagflow::actors
