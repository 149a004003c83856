// SavedList: which checkpoints a folder has, and which of them go.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "devices/checkpoint/atomic_file.h"
#include "graph/status.h"

namespace tagflow::actors {

// Note [Which checkpoints go]
// A new checkpoint is complete before the folder's file names it, and the file
// does not name older ones as the newest before these go. It forgets them only
// when they are gone: where the process ends in between, the next one finds
// them in the file, and removes them. A whole checkpoint that the file does not
// name is not ours to remove, as it is not TensorFlow's: a copy that somebody
// keeps looks just like one that a killed process completed and did not list.
// Nor is one of another program, though the file names it: one without a number
// of steps (kStepKey), of a name that no saver gives, or with a MetaGraph
// beside it. Nor is one whose index cannot be read, since nothing tells whose
// it is. These stay, and do not count. Those that are damaged go before whole
// ones do.
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

  // What the folder's file says, and removes what is left of ours that went.
  // Where the file is not there, or no such file, the newest checkpoint is on
  // the list, if its name is one of ours, and others are left alone. Errors of
  // reading, as those of find_newest_checkpoint(): but that none is whole is no
  // error.
  Status read();
  // A prefix under which there is no checkpoint, nor any of the list, for which
  // add() has memory then. ResourceExhausted where none is found, as in a
  // folder that nobody may look into.
  Result<std::string> free_prefix(int64_t step);
  // Has a checkpoint that was published named as the newest, and those removed
  // that are too many, though the list cannot be written: then whoever reads it
  // finds the newest one by the files. It stays on the list where that fails.
  Status add(std::string prefix);
  // Has these removed before all others: a restore found them damaged.
  void put_first(std::span<const std::string> damaged);

 private:
  bool has(const std::string& prefix) const;
  // By its place and name, and what is beside it.
  bool may_be_ours(const std::string& prefix) const;
  // Whether what there is of a prefix without an index may be removed.
  bool is_left_of_ours(const std::string& prefix) const;
  // Whether another program may have made it.
  bool is_other(const std::string& prefix) const;
  // As free_prefix() makes them.
  bool has_our_name(const std::string& prefix) const;
  Status write() const;
  // Removes so many of ours, the oldest, and takes them off the list.
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
