// Saver: checkpoints of a session's variables, written beside running steps.
//
//   SaverOptions options = {.folder = "out", .every_steps = 100};
//   auto saver = Saver::create(*session, options);
//   auto restored = (*saver)->restore();  // the newest, where there is one
//   ... run a step; (*saver)->save_if_due(++step); ...
//   (*saver)->save(step);
//   (*saver)->close();
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/checkpoint/restore.h"
#include "graph/status.h"

namespace tagflow::checkpoint {
class FileSystem;
}

namespace tagflow::actors {

struct SaverOptions {
  // Made where it is missing. One saver at a time has it.
  std::string folder;
  // A checkpoint's prefix is FOLDER/NAME-STEP; where there is one already, or
  // the folder's file "checkpoint" lists it, FOLDER/NAME-STEP.1, ...: none is
  // written over.
  std::string name = "model.ckpt";
  // So many of the list stay, those that were made last. 0: all do. What the
  // list does not name stays, too, since somebody may have put it there: a copy
  // of a checkpoint, or one that a process completed when it was killed before
  // it had it listed. So does what another program saved.
  int keep = 5;
  // What save_if_due() takes for due: so many steps since the last save, or
  // since 0, or so much time since then, or since the saver was made. Zero:
  // neither.
  int64_t every_steps = 0;
  std::chrono::nanoseconds every{0};
  // What the session's model says, where it has one (SavedModel::state()). The
  // checkpoints have its objects, too, so that TensorFlow 2 restores the
  // variables of its program, and restore() finds them though they were
  // renamed; they do not have the variables that only the model's own saver
  // uses, see restore_checkpoint().
  graph::SavedState model;
  // How long a save waits for a moment between steps.
  std::chrono::nanoseconds patience = std::chrono::minutes(1);
  // Waits for the disk, so that a checkpoint survives the end of the machine.
  bool sync = true;
  // Internal: where files are written; null: the system's. Outlives the saver.
  checkpoint::FileSystem* files = nullptr;
};

// Saves what Snapshots takes: all variables that the graph has when this is
// made, at one moment between steps, and the counts of random ops. A thread of
// its own writes it while further steps run: to files of temporary names, which
// get theirs when all is on the disk, so that a checkpoint is there as a whole
// or not at all, whenever the process ends. The checkpoints are TensorFlow's
// bundles, and the folder's file "checkpoint" lists them for TensorFlow, too.
//
// Memory beyond that of the variables: at most as much again, while a
// checkpoint is written, and less than 1 MiB. A snapshot shares the variables'
// buffers, so it costs only what running steps change meanwhile, and what is
// copied at once: variables on accelerators, or with sparse updates. There is
// one snapshot at a time.
//
// An error of the writing is returned by the call that comes next. It loses
// nothing: earlier checkpoints stay, and so do the variables.
//
// Thread-safe. Keeps the state, not the session.
class Saver {
 public:
  // InvalidArgument for an empty folder or name, a name of more than 200 bytes,
  // negative numbers, or a model that is not that of the graph;
  // FailedPrecondition where another saver has the folder; errors of making it,
  // of reading what it has, and of Snapshots::create(). Removes what killed
  // processes left there half written.
  static Result<std::unique_ptr<Saver>> create(const Session& session,
                                               SaverOptions options);
  // Closes it; nobody hears of an error.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Restores the newest complete checkpoint of the folder, as
  // restore_checkpoint() does; nothing where the folder has none. It is an
  // error where it has some, but none that is whole. Refuses one that has other
  // tensors than the graph has variables: the next ones would not have them.
  Result<std::optional<Restored>> restore();

  // Waits for the writing of the checkpoint before, takes a snapshot, and has
  // it written. Where the writing before failed, returns that error, once, and
  // saves nothing. DeadlineExceeded where no moment came at which no step was
  // halfway through. FailedPrecondition where variables are to be saved, but
  // none of them has a value: who restored that would take a training for begun
  // that is not. The writing fails as FailedPrecondition where the folder was
  // moved or removed since the saver was made. REQUIRES: as for Session::run();
  // 0 <= step <= 2^53.
  Status save(int64_t step);
  // The same where one is due. Else returns the error of a writing that has
  // failed, once, and waits for nothing.
  Status save_if_due(int64_t step);
  // Returns when nothing is being written any more, with the error of what
  // was, once.
  Status wait();
  // As wait(); then gives the folder back. Later saves fail as
  // FailedPrecondition.
  Status close();
  // The step of the last checkpoint that was restored, or written without an
  // error.
  std::optional<int64_t> saved_step() const;

 private:
  class Parts;
  explicit Saver(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
