// Merges several bundles into one, for savers of several devices: each writes
// its own tensors, and one of them merges.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/files/atomic_file.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

struct MergeOptions {
  WriteOptions write;
  // Missing sources are skipped, as long as one exists.
  bool allow_missing = false;
};

// The shards of the sources become those of the new one, by renaming: no bytes
// are copied. Slices of one tensor may be in several sources. The sources' own
// indices are removed at the end. If the process ends before that, some shards
// have moved, but no index names them: there is no new checkpoint, and some
// sources are incomplete.
class BundleMerge {
 public:
  // Reads the sources' indices, and writes the new one under a temporary name.
  // NotFound if a source is missing, InvalidArgument if two have a tensor
  // of the same name or slices that overlap; errors of files.
  static Result<BundleMerge> prepare(std::span<const std::string> sources,
                                     const std::string& target,
                                     const MergeOptions& options);
  // Moves the files.
  Status publish();

 private:
  struct Move {
    std::string from, to;
  };
  std::string target_;
  WriteOptions options_;
  std::vector<Move> moves_;
  std::vector<std::string> old_indices_;
  std::unique_ptr<AtomicFile> index_;
};

}  // namespace tagflow::checkpoint
