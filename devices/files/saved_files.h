// The files of a folder that checkpoints are saved to.
#pragma once

#include <string>

#include "devices/files/atomic_file.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// Removes the files of a bundle, its index first, so that a partial removal
// leaves no checkpoint. Missing files are not an error. Thread-compatible.
Status remove_bundle(const std::string& prefix, const WriteOptions& options);

// Removes the files that a process left in the folder when it was killed during
// a save: temporary files of its list of checkpoints, and of a checkpoint whose
// name begins with `name`. REQUIRES: nobody saves to it meanwhile.
void remove_temporary_files(const std::string& folder, const std::string& name,
                            const WriteOptions& options);

}  // namespace tagflow::checkpoint
