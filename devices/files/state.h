// The file "checkpoint" of a folder, which lists the checkpoints, and the
// search for the newest complete one.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/atomic_file.h"
#include "devices/files/files.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// Prefixes are absolute, or relative to the working directory, as those of
// BundleReader. In the file, prefixes within its folder are relative to it, so
// that the folder can be moved.
struct CheckpointState {
  std::string newest;
  std::vector<std::string> all;  // the newest last
  // When each of them was made, in seconds since 1970; as many as `all`, or
  // none.
  std::vector<double> timestamps;
  double last_preserved = 0;
};

// Whether the two paths are equal when made absolute. Follows no links.
// Thread-safe.
bool is_same_path(const std::string& a, const std::string& b);

// NotFound if the folder has no such file, InvalidArgument if its text is
// invalid. Thread-safe.
Result<CheckpointState> read_checkpoint_state(
    const std::string& folder, FileSystem& files = local_files());
// The same for a file of the folder that is to become its list.
Result<CheckpointState> read_checkpoint_list(const std::string& folder,
                                             const std::string& path,
                                             FileSystem& files = local_files());
// Whether the error means that no list exists, rather than that it could not be
// read. Thread-safe.
bool names_nothing(const Status& status);
Status write_checkpoint_state(const std::string& folder,
                              const CheckpointState& state,
                              const WriteOptions& options);
// The list under a temporary name, finished.
Result<std::unique_ptr<AtomicFile>> prepare_checkpoint_state(
    const std::string& folder, const CheckpointState& state,
    const WriteOptions& options);
// The path of the folder's list.
std::string checkpoint_state_path(const std::string& folder);

// By prefix, the errors of checkpoints that turned out to be damaged when they
// were read.
using DamagedCheckpoints = std::map<std::string, Status>;

// A checkpoint that was skipped, and its error.
struct DamagedCheckpoint {
  std::string prefix;
  std::string what;
};

struct NewestCheckpoint {
  std::string prefix;
  std::vector<DamagedCheckpoint> damaged;
};

// The newest checkpoint in the folder whose files all exist with all of their
// bytes. It is the one that the file "checkpoint" names; if that is incomplete,
// or the file does not exist, the one whose index was written last; among names
// that differ in "-STEP" only, the one of the last step. Checkpoints in `known`
// are skipped, though all of their bytes exist: whether the contents are valid
// is up to the reader. NotFound if there is no checkpoint; DataLoss, with
// advice, if there are some, but none is complete. Also errors of reading
// that do not concern the files, as too many open files: then the newest one is
// unknown. A name in "checkpoint" that no index in the folder has may lead to
// anything, and is passed over for a complete one whatever it is. The folder is
// one of `files`. Thread-safe.
Result<NewestCheckpoint> find_newest_checkpoint(
    const std::string& folder, const DamagedCheckpoints& known = {},
    FileSystem& files = local_files());

}  // namespace tagflow::checkpoint
