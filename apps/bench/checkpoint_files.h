// A checkpoint of some size, written and read without a session.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/rival.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::apps {

// kCheckpointTensors tensors of floats, and a separate folder for the files.
// Each write makes new files; those of the previous write are removed first,
// which is not timed. Thread-compatible.
class CheckpointFiles {
 public:
  // Returns PermissionDenied if no folder can be made. The tensors are made
  // when they are first written.
  static Result<CheckpointFiles> make(int64_t bytes);

  // Of all tensors.
  double bytes() const;
  int64_t elements() const { return elements_; }  // of each
  // The prefix of the checkpoint that write_seconds() leaves.
  std::string prefix() const { return (folder_.path() / "model").string(); }

  // Seconds to write a bundle, with checksums, to the disk if `sync` is true,
  // else to the page cache.
  Result<double> write_seconds(bool sync = false);
  // Seconds to write only the same bytes to a file: a lower bound for a bundle.
  Result<double> raw_write_seconds();
  // Seconds to read the bundle in this thread. REQUIRES: one was written.
  Result<double> read_seconds() const;
  // Seconds to copy the tensors in memory.
  Result<double> copy_seconds();

 private:
  CheckpointFiles(TemporaryFolder folder, int64_t elements)
      : folder_(std::move(folder)), elements_(elements) {}
  Status start_write();
  Status write_bundle(bool sync) const;
  Status write_raw() const;

  TemporaryFolder folder_;
  int64_t elements_;
  std::vector<Tensor> tensors_;
};

}  // namespace tagflow::apps
