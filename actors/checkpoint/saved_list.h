// SavedList: the checkpoints of a folder; it decides which are removed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/files/atomic_file.h"
#include "devices/files/state.h"
#include "graph/status.h"

namespace tagflow::actors {

// Note [Which checkpoints go]
// A new checkpoint is complete before the folder's file names it. The file
// names a newer one as the newest before an old one is removed, and drops its
// name only after the removal: if the process ends in between, the next process
// finds it in the file, and removes it.
//
// A new list is on the disk, under a temporary name, before the files of its
// newest checkpoint get their names; its own name it gets afterwards. So if the
// process ends in between, the next one finds the new list, and with it what
// the killed one was about to do: it gives the list its name if the checkpoint
// is complete, and removes the checkpoint's files otherwise.
//
// A complete checkpoint that neither list names is never removed, neither by us
// nor by TensorFlow: a user has copied it there. Nor is one that only the new
// list names if it is of another step than its name says, or the list has been
// written by somebody else since.
//
// A checkpoint of another program is not removed, even if the file names it: it
// has no number of steps (kStepKey), a name that no saver makes, or a MetaGraph
// beside it. One whose index cannot be read is not removed, since its writer is
// unknown. All these stay, and do not count. Damaged checkpoints are removed
// before complete ones.
//
// Thread-compatible.
class SavedList {
 public:
  SavedList(std::string folder, std::string name, int keep,
            const checkpoint::WriteOptions& options)
      : folder_(std::move(folder)),
        name_(std::move(name)),
        keep_(keep),
        options_(options) {}

  // Ends what a process has begun that was killed while it saved. Errors are
  // dropped: then its checkpoint stays, and does not count. REQUIRES: nobody
  // else saves to the folder; called before read().
  void end_killed_save() const;
  // Reads the folder's file, and removes the remains of our removed
  // checkpoints. If the file is missing or invalid, the list contains the
  // newest checkpoint, if its name is one of ours, and other checkpoints are
  // ignored. Errors of reading, as those of find_newest_checkpoint(); but it is
  // not an error if no checkpoint is complete.
  Status read();
  // A prefix without a checkpoint, in the folder and on the list. Reserves the
  // memory for add(). ResourceExhausted if none is found, as in a folder that
  // cannot be searched.
  Result<std::string> free_prefix(int64_t step);
  // The list with a checkpoint that is about to be published as the newest,
  // under a temporary name, where end_killed_save() finds it.
  Result<std::unique_ptr<checkpoint::AtomicFile>> announce(
      const std::string& prefix) const;
  // Puts a published checkpoint on the list, gives that what announce()
  // returned, and removes excess checkpoints, even if the list cannot be
  // written: then a reader finds the newest one by the files. The checkpoint
  // stays on the list after an error.
  Status add(std::string prefix,
             Result<std::unique_ptr<checkpoint::AtomicFile>> list);
  // Marks these to be removed before all others, since a restore found them
  // damaged.
  void put_first(std::span<const std::string> damaged);

 private:
  bool has(const std::string& prefix) const;
  // Decides by its folder and name, and the files beside it.
  bool may_be_ours(const std::string& prefix) const;
  // Whether the files of a prefix without an index may be removed.
  bool is_left_of_ours(const std::string& prefix) const;
  // Whether another program may have made it.
  bool is_other(const std::string& prefix) const;
  // Whether free_prefix() could have made the name.
  bool has_our_name(const std::string& prefix) const;
  // Whether it is a whole checkpoint of ours, of the step that its name says.
  bool is_whole_and_ours(const std::string& prefix) const;
  checkpoint::CheckpointState state() const;
  // Removes the `count` oldest of our checkpoints, also from the list.
  Status remove_oldest(size_t count);

  const std::string folder_, name_;
  const int keep_;
  const checkpoint::WriteOptions options_;
  struct Saved {
    std::string prefix;
    double time = 0;  // when it was made, in seconds since 1970
    bool is_other = false;
  };
  std::vector<Saved> saved_;  // the list, the newest last
  std::string newest_;
  double last_preserved_ = 0;
};

}  // namespace tagflow::actors
