// Saver: writes checkpoints of a session's variables while steps run.
//
//   SaverOptions options = {.folder = "out", .every_steps = 100};
//   auto saver = Saver::create(*session, options);
//   auto restored = (*saver)->restore();  // the newest, if there is one
//   ... run a step; (*saver)->save_if_due(++step); ...
//   (*saver)->save(step);
//   (*saver)->close();
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoint/restore.h"
#include "graph/status.h"

namespace tagflow::checkpoint {
class FileSystem;
}

namespace tagflow::actors {

// Who writes the variables of a cluster, and reads them at Saver::restore().
enum class ShardWriters : uint8_t {
  kAny,      // the workers, if all of them may and can; else the master
  kMaster,   // the process of the saver, which fetches them
  kWorkers,  // each worker those that it has
};

struct SaverOptions {
  // Created if it is missing. It belongs to one saver at a time.
  std::string folder;
  // A checkpoint's prefix is FOLDER/NAME-STEP; if that exists already, or the
  // folder's file "checkpoint" lists it, FOLDER/NAME-STEP.1, ...: no checkpoint
  // is overwritten.
  std::string name = "model.ckpt";
  // How many checkpoints of the list are kept: the newest ones. 0: all.
  // Checkpoints that are not on the list are kept, too, since they may be
  // copies that a user has made. So are those of other programs.
  int keep = 5;
  // When save_if_due() saves: after so many steps since the last save, or since
  // 0; or after so much time since then, or since the creation of the saver.
  // Zero: never.
  int64_t every_steps = 0;
  std::chrono::nanoseconds every{0};
  // The state of the session's model, if it has one (SavedModel::state()). The
  // checkpoints include its objects, so that TensorFlow 2 can restore the
  // variables of its program, and restore() finds renamed variables. They do
  // not include variables that only the model's own saver uses, see
  // restore_checkpoint().
  graph::SavedState model;
  // How long a save waits for a moment between steps.
  std::chrono::nanoseconds patience = std::chrono::minutes(1);
  // Workers write to the saver's own folder, which they must see at the same
  // path: docs/survival.md. Without a cluster it is the process itself.
  ShardWriters writers = ShardWriters::kAny;
  // How long a save waits for the shards of workers: then it fails, and steps
  // go on; and how long a restore does: then the saver's process reads them.
  std::chrono::nanoseconds shard_patience = std::chrono::minutes(10);
  // Receives what became of each checkpoint, on the thread that writes, and
  // must not call the saver. May be null.
  struct Written {
    int64_t step = 0;
    Status status;
    std::chrono::nanoseconds time{0};  // that the write took
  };
  std::function<void(const Written&)> on_written = nullptr;
  // Waits for the disk, so that a checkpoint survives a crash of the machine.
  bool sync = true;
  // Internal: what opens and changes files; null: the system. Outlives the
  // saver.
  checkpoint::FileSystem* files = nullptr;
  // Internal: the time that `every` refers to; null: the system's.
  std::function<std::chrono::steady_clock::time_point()> clock = nullptr;
};

// Saves snapshots: all variables that the graph has when this is made, at one
// moment between steps, the counts of random ops, and the contents of queues,
// tables and the like. A thread of its own
// writes them while further steps run. It writes files with temporary names,
// and renames them when all data is on the disk, so that a checkpoint is
// complete or absent, whenever the process ends. The checkpoints are
// TensorFlow's bundles, and the folder's file "checkpoint" lists them for
// TensorFlow, too.
//
// Memory beyond that of the variables: at most as much again, while a
// checkpoint is written, and less than 9 MiB. A snapshot shares the variables'
// buffers, so it needs memory only for variables that steps change meanwhile,
// and for those that are copied at once: variables on accelerators, or with
// sparse updates. The contents of queues and the like are copied at once, too,
// while steps wait. There is one snapshot at a time.
//
// The next call returns an error of the writer. Nothing is lost: earlier
// checkpoints and the variables are kept.
//
// Thread-safe. Keeps the shared state alive, not the session.
class Saver {
 public:
  // InvalidArgument for an empty folder or name, a name of more than 200 bytes,
  // negative numbers, or a model that is not that of the graph;
  // FailedPrecondition if another saver uses the folder; errors of creating and
  // reading the folder, and of Snapshots::create(). Removes incomplete files of
  // killed processes, and puts a checkpoint on the list that one completed but
  // did not list. If workers are to write, the error of one that cannot.
  static Result<std::unique_ptr<Saver>> create(const Session& session,
                                               SaverOptions options);
  // Closes it; errors are dropped.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Restores the newest complete checkpoint of the folder, as
  // restore_checkpoint() does; nothing if the folder has no checkpoints. If
  // workers write, each reads its variables, if it can. It is
  // an error if none of its checkpoints is complete. Rejects a checkpoint with
  // tensors that are not variables of the graph, since later checkpoints would
  // not have them.
  Result<std::optional<Restored>> restore();

  // Waits until the previous checkpoint is written, takes a snapshot, and
  // starts its writing. If the previous write failed, returns that error, once,
  // and saves nothing. DeadlineExceeded if there was no moment between steps.
  // FailedPrecondition if there are variables, but none has a value: a restore
  // of such a checkpoint would look like a training that has begun. The write
  // fails as FailedPrecondition if the folder was moved or removed since the
  // saver was made. REQUIRES: as for Session::run(); 0 <= step <= 2^53.
  Status save(int64_t step);
  // As save(), if a checkpoint is due. Otherwise returns the error of a failed
  // write, once, and does not wait.
  Status save_if_due(int64_t step);
  // Waits until no checkpoint is being written; returns the error of the write,
  // once.
  Status wait();
  // As wait(); then releases the folder. Later saves fail as
  // FailedPrecondition.
  Status close();
  // The step of the last checkpoint that was restored, or written without an
  // error.
  std::optional<int64_t> saved_step() const;
  // Why workers do not write the checkpoints of a cluster, though any could; OK
  // if they do, or were not to.
  Status why_not_workers() const;
  // The queues and the like that the last snapshot lacks, each with the reason:
  // Snapshot::left_out.
  std::vector<std::string> left_out() const;

 private:
  class Parts;
  explicit Saver(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
