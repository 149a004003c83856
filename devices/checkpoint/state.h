// The file "checkpoint" of a folder, which says what checkpoints there are, and
// how the newest one that is whole is found.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "devices/checkpoint/atomic_file.h"
#include "devices/checkpoint/files.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// Prefixes are absolute, or relative to the working directory, as those of
// BundleReader; in the file they are relative to its folder where they are in
// it, so that the folder can be moved.
struct CheckpointState {
  std::string newest;
  std::vector<std::string> all;  // the newest last
  // When each of them was made, in seconds since 1970; as many as `all`, or
  // none.
  std::vector<double> timestamps;
  double last_preserved = 0;
};

// Whether the two paths are equal, made absolute. Follows no links.
// Thread-safe.
bool is_same_path(const std::string& a, const std::string& b);

// NotFound where the folder has no such file, InvalidArgument where it is no
// text of one. Thread-safe.
Result<CheckpointState> read_checkpoint_state(
    const std::string& folder, FileSystem& files = local_files());
// Whether that error says that there is no list, rather than that it could not
// be read. Thread-safe.
bool names_nothing(const Status& status);
Status write_checkpoint_state(const std::string& folder,
                              const CheckpointState& state,
                              const WriteOptions& options);

// What is wrong with a checkpoint, by its prefix: of those that turned out to
// be damaged when they were read.
using DamagedCheckpoints = std::map<std::string, Status>;

// One that was passed over, and what is wrong with it.
struct DamagedCheckpoint {
  std::string prefix;
  std::string what;
};

struct NewestCheckpoint {
  std::string prefix;
  std::vector<DamagedCheckpoint> damaged;
};

// The newest checkpoint in the folder of which every file is there with all of
// its bytes: the one that the folder's file "checkpoint" names, or, where that
// is not whole, or there is no such file, of the others the one whose index was
// written last; of those whose names differ in "-STEP" only, the one of the
// last step. NotFound where there is none at all; DataLoss, with what to do
// about it, where there are some, but none is whole. Errors of reading that say
// nothing of the files, as where too many are open: it is not known then which
// is the newest. None of `known` is whole, though all of its bytes are there;
// where that is so, is up to who reads them. Thread-safe.
Result<NewestCheckpoint> find_newest_checkpoint(
    const std::string& folder, const DamagedCheckpoints& known = {});

}  // namespace tagflow::checkpoint
