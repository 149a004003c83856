// Snapshots: all variables of a session at one moment between steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {
class FileSystem;
struct ForeignShard;
struct WriteOptions;
}  // namespace tagflow::checkpoint

namespace tagflow::actors {

class Session;
struct StoredVariables;  // actors/checkpoint/stored_variables.h

// The state that a training needs to continue from that moment.
struct Snapshot {
  // Values in the host's memory, by the names of the variables; in a named
  // container, the name is "container/name".
  std::map<std::string, Tensor, std::less<>> variables;
  // Those whose values workers hold, to write them themselves, each with the
  // number of its worker; and the number of the save, 0 if there is none: Note
  // [Shards of workers] in worker_shards.h.
  std::map<std::string, size_t, std::less<>> held;
  int64_t save = 0;
  // The state of random ops: the session's seed, and in how many runs each op
  // took part. Without a seed, as in files of other programs, a restore keeps
  // the numbers of the session.
  std::optional<uint64_t> seed;
  std::map<std::string, int64_t, std::less<>> run_counts;
  // The contents of queues, tables, accumulators, staging areas and barriers
  // that have a name: Note [Saved contents] in devices/state/saved_contents.h.
  std::vector<Tensor> contents;
  // The others of these, each with the reason.
  std::vector<std::string> left_out;

  // Whether it has the variable, here or at a worker.
  bool has(std::string_view name) const {
    return variables.contains(name) || held.contains(name);
  }
};

// Takes and restores snapshots of the variables that a session's graph has when
// this is made. Keeps the shared state alive, not the session.
//
// No step that updates variables runs while a snapshot is taken (Note [Borders]
// in shared_state.h): the snapshot waits for running ones, and while it reads
// the variables, others wait for it. Steps without updates continue. A dense
// variable on the host is shared, not copied, until the next update needs a
// buffer of its own; a variable that is on an accelerator, or was updated
// sparsely, is copied; so are the contents of queues, tables and the like. So a
// snapshot needs at most as much memory as all of these. Thread-safe.
class Snapshots {
 public:
  // Errors as of Session::create(). InvalidArgument if two variables of
  // different kinds have the same name.
  static Result<std::unique_ptr<Snapshots>> create(const Session& session);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // From now on, workers hold their variables for a snapshot, and write them by
  // write_held(). The error of the first worker that cannot write shards beside
  // those of that prefix, or whose files this process does not see; then
  // snapshots are taken as before. FailedPrecondition if the session has no
  // workers.
  Status hold_at_workers(const std::string& prefix,
                         checkpoint::FileSystem& files);
  // Lets the workers write what they hold for the snapshot: errors of theirs,
  // with their names; DeadlineExceeded if that takes longer. `key_of` gives the
  // name in the checkpoint of each variable. REQUIRES: no other snapshot was
  // taken since.
  Result<std::vector<checkpoint::ForeignShard>> write_held(
      const Snapshot& snapshot, const std::string& prefix,
      const std::function<const std::string&(const std::string&)>& key_of,
      const checkpoint::WriteOptions& options,
      std::chrono::nanoseconds timeout);

  // Takes a snapshot of the variables that have a value. DeadlineExceeded if
  // there was no moment between steps. REQUIRES: as for Session::run().
  Result<Snapshot> take(
      std::chrono::nanoseconds timeout = std::chrono::minutes(1));
  // Assigns all variables of the snapshot in one step, and then, if the
  // snapshot has a seed, the seed and counts of the state. Queues and the like
  // that the snapshot has are removed, and get its contents when a node makes
  // them again; others are kept. A concurrent step
  // may see some of these changes and not the others, so run none. A session
  // that has a seed of its own (SessionOptions::seed) keeps it. Variables of
  // the graph that the snapshot does not have are not changed: `missing`, if
  // not null, gets their names. InvalidArgument, with the differences, if the
  // graph lacks a variable, or has it with another type or shape; then nothing
  // is changed. REQUIRES: as for Session::run().
  Status restore(const Snapshot& snapshot,
                 std::vector<std::string>* missing = nullptr);
  // The workers that can read variables of a checkpoint themselves, by the
  // variables' names: those that hold snapshots, for variables whose device is
  // known.
  std::map<std::string, size_t, std::less<>> readers() const;
  // As restore(), but workers read the stored variables first, all before any
  // variable is assigned: their errors; DeadlineExceeded if that takes longer.
  // REQUIRES: the stored variables are those of the graph, of their types, and
  // not in the snapshot; their tasks are those of readers().
  Status restore(const Snapshot& snapshot, const StoredVariables& stored,
                 std::chrono::nanoseconds timeout);
  // The names, in ascending order.
  std::vector<std::string> names() const;

 private:
  struct Parts;
  Status restore(const Snapshot& snapshot, const StoredVariables* stored,
                 std::vector<std::string>* missing,
                 std::chrono::nanoseconds timeout);
  explicit Snapshots(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tagflow::actors
