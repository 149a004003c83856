// Several bundles made one, as savers of several devices do: each writes its
// own tensors, and one of them merges.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/checkpoint/atomic_file.h"
#include "graph/status.h"

namespace tagflow::checkpoint {

struct MergeOptions {
  WriteOptions write;
  // Sources that are not there are left out, as long as there is one.
  bool allow_missing = false;
};

// The shards of the sources become those of the new one, by new names: no bytes
// are copied. Slices of one tensor may be in several sources. The sources' own
// indices are removed at the end. Where the process ends in between, shards
// have moved while no index names them: there is no new checkpoint, and some
// sources are not complete any more.
class BundleMerge {
 public:
  // Reads the sources' indices, and writes the new one under a temporary name.
  // NotFound where a source is not there, InvalidArgument where two have a
  // tensor of the same name or slices that overlap; errors of files.
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
