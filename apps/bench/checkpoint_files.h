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

// Floats in kCheckpointTensors tensors, and a folder of their own for the
// files. Each write makes new ones: those of the one before are removed first,
// and not in its time. Thread-compatible.
class CheckpointFiles {
 public:
  // PermissionDenied where there can be no folder. The tensors are made when
  // they are first written.
  static Result<CheckpointFiles> make(int64_t bytes);

  // Of all tensors.
  double bytes() const;
  int64_t elements() const { return elements_; }  // of each
  // Of the checkpoint that write_seconds() leaves.
  std::string prefix() const { return (folder_.path() / "model").string(); }

  // Seconds that it takes to write a bundle, with checksums; `sync`: to the
  // disk, else to the page cache.
  Result<double> write_seconds(bool sync = false);
  // To write the same bytes to a file, and nothing else: no bundle can be
  // written faster.
  Result<double> raw_write_seconds();
  // To read the bundle in this thread. REQUIRES: one was written.
  Result<double> read_seconds() const;
  // To copy the tensors in memory.
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
