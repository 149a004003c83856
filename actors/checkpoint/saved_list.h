// SavedList: the checkpoints of a folder; it decides which are removed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "devices/files/atomic_file.h"
#include "graph/status.h"

namespace tagflow::actors {

// Note [Which checkpoints go]
// A new checkpoint is complete before the folder's file names it. The file
// names a newer one as the newest before an old one is removed, and drops its
// name only after the removal: if the process ends in between, the next process
// finds it in the file, and removes it. A complete checkpoint that the file
// does not name is never removed, neither by us nor by TensorFlow: a copy that
// a user keeps looks like one that a killed process completed but did not list.
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
  // Writes the list with a published checkpoint as the newest, and removes
  // excess checkpoints, even if the list cannot be written: then a reader finds
  // the newest one by the files. The checkpoint stays on the list after an
  // error.
  Status add(std::string prefix);
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
  Status write() const;
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
