// The files of a folder that checkpoints are saved to.
#pragma once

#include <string>

#include "devices/checkpoint/atomic_file.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

// Removes the files of a bundle, its index first, so that what is left of it,
// where the process ends in between, is no checkpoint. What is not there is no
// error.
// Thread-compatible.
Status remove_bundle(const std::string& prefix, const WriteOptions& options);

// Removes what a process that was killed in the middle of a save has left in
// the folder: temporary files of its list of checkpoints, and of a checkpoint
// whose name begins with `name`. REQUIRES: nobody saves to it meanwhile.
void remove_temporary_files(const std::string& folder, const std::string& name,
                            const WriteOptions& options);

}  // namespace tagflow::checkpoint
