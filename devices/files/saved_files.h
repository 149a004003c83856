// The files of a folder that checkpoints are saved to.
#pragma once

#include <string>
#include <vector>

#include "devices/files/atomic_file.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// Removes the files of a bundle, its index first, so that a partial removal
// leaves no checkpoint. Missing files are not an error. Thread-compatible.
Status remove_bundle(const std::string& prefix, const WriteOptions& options);

// The paths of lists of checkpoints that have temporary names, since their
// writer was killed. None if the folder cannot be read. REQUIRES: nobody saves
// to it meanwhile.
std::vector<std::string> temporary_lists(const std::string& folder,
                                         FileSystem& files);

// Removes the files that a process left in the folder when it was killed during
// a save: temporary files of its list of checkpoints, and of a checkpoint whose
// name begins with `name`. REQUIRES: nobody saves to it meanwhile.
void remove_temporary_files(const std::string& folder, const std::string& name,
                            const WriteOptions& options);

}  // namespace tagflow::checkpoint
