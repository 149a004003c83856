// CheckpointFolder: a folder of checkpoints that one writer owns.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/saved_list.h"
#include "devices/files/atomic_file.h"
#include "devices/files/folder_lock.h"
#include "graph/status.h"

namespace tagflow::actors {

// The order in which files get their names, and what is made of a process that
// was killed between any two of them: Note [Publishing] in
// devices/files/bundle_writer.h, and Note [Which checkpoints go].
//
// Thread-compatible.
class CheckpointFolder {
 public:
  // Makes the folder if it is missing, takes its lock, ends what a killed
  // process has begun, and reads the list. What load() finds from then on stays
  // after a crash of the machine, unless the options sync nothing. `name` and
  // `keep` are those of SaverOptions. FailedPrecondition if another writer has
  // the folder; errors of creating, syncing and reading it.
  static Result<std::unique_ptr<CheckpointFolder>> open(
      const std::string& folder, const std::string& name, int keep,
      const checkpoint::WriteOptions& options);

  // Lets workers write what they hold for the snapshot beside this prefix, and
  // returns their shards. Null if they hold nothing.
  using WriteHeld = std::function<Result<std::vector<checkpoint::ForeignShard>>(
      const Snapshot& snapshot, const std::string& prefix)>;
  // Writes a checkpoint of the variables in `names`, which becomes the newest
  // one, and removes old ones; after an error the list has what it had, unless
  // only the list could not be written. FailedPrecondition if the folder was
  // moved or removed. Removes files that workers have left of earlier saves.
  // REQUIRES: not released.
  Status write(Checkpoint checkpoint, std::span<const std::string> names,
               const ModelObjects& objects, const WriteHeld& write_held);
  // The newest checkpoint whose data match their checksums, as
  // load_checkpoint() finds it. NotFound if there is none.
  Result<LoadedCheckpoint> load(std::span<const GraphVariable> variables,
                                const ModelObjects& objects,
                                const Readers& readers = {});
  // Another writer may have the folder from now on.
  void release() { lock_.reset(); }

 private:
  CheckpointFolder(const std::string& folder, const std::string& name, int keep,
                   const checkpoint::WriteOptions& options)
      : folder_(folder),
        name_(name),
        options_(options),
        list_(folder, name, keep, options) {}
  Status write_there(Checkpoint checkpoint, std::span<const std::string> names,
                     const ModelObjects& objects, const WriteHeld& write_held);
  Result<std::vector<checkpoint::ForeignShard>> held_shards(
      const Checkpoint& checkpoint, const std::string& prefix,
      const WriteHeld& write_held);

  const std::string folder_, name_;
  const checkpoint::WriteOptions options_;
  SavedList list_;
  std::unique_ptr<checkpoint::FolderLock> lock_;
};

}  // namespace tagflow::actors
