// TensorFile: named tensors in files of any supported format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/state.h"
#include "devices/files/tensor_slice.h"
#include "graph/shape.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

class BundleReader;  // bundle_reader.h

// The description of a tensor, available before it is read.
struct TensorInfo {
  std::string name;
  std::string dtype;  // dtype_name(), or the format's own name
  Shape shape;
  uint64_t bytes = 0;  // in the file
  int shard = 0;       // -1 if its slices are in several
  int slices = 0;      // 0: it is in one piece

  // "float[2,3]".
  std::string type_text() const { return dtype + shape.to_string(); }
};

// Thread-safe.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  // "bundle" or "safetensors".
  virtual std::string_view format() const = 0;
  // The prefix of a bundle; for a folder, that of its newest bundle.
  virtual const std::string& path() const = 0;
  virtual int num_shards() const = 0;
  // By name.
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  // Errors of BundleReader::read() and SafetensorsReader::read().
  virtual Result<Tensor> read(std::string_view name) const = 0;
  // A slice of it. InvalidArgument if the slice is not in the tensor; errors of
  // read() and BundleReader::read_slice().
  virtual Result<Tensor> read_slice(std::string_view name,
                                    const TensorSlice& slice) const = 0;
  // What reads it, if it is a bundle; else null. Lives as long as this.
  virtual const BundleReader* bundle() const { return nullptr; }
  // Null if the name does not exist.
  const TensorInfo* find(std::string_view name) const;
  // If the path was a folder's: the damaged checkpoints that were skipped.
  // Empty otherwise. A caller that asked for the newest one should report them.
  const std::vector<DamagedCheckpoint>& damaged() const { return damaged_; }

 protected:
  explicit TensorFile(std::vector<DamagedCheckpoint> damaged = {})
      : damaged_(std::move(damaged)) {}

 private:
  const std::vector<DamagedCheckpoint> damaged_;
};

// `path` is a .safetensors file, the prefix of a bundle or its .index, or a
// folder, whose newest complete checkpoint is used, without those in `known`.
// NotFound if it does not exist; errors of BundleReader, SafetensorsReader
// and find_newest_checkpoint(). `files` has bundles and folders; a .safetensors
// file is one of this machine. Outlives the file. Thread-safe.
Result<std::unique_ptr<TensorFile>> open_tensor_file(
    const std::string& path, const DamagedCheckpoints& known = {},
    FileSystem& files = local_files());

bool is_safetensors_path(std::string_view path);

}  // namespace tagflow::checkpoint
