// Shards of a bundle that several processes write: each its own file, under a
// temporary name, and one of them all else.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/atomic_file.h"
#include "devices/files/bundle_index.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

// Note [Shards of other processes]
// The process that saves gives each save a number of 63 random bits. Another
// process writes its shard to the temporary name of that number beside the
// shard's own name, and leaves it there. So a file of that name is of this
// save, and of none that was given up, whoever still writes to that one. The
// saver looks for the file, compares its size and a checksum with what the
// writer says, and gives all files their names, the index last. It does not
// find the file, or another one, if the two do not see the same file system, or
// see it at other paths.
//
// The checksum is of some places of a large file only, which the number of the
// save chooses: enough to tell one file from another one. Damage is found by
// the checksum of each tensor, when it is read.

// What a file's name says of a shard.
struct ShardPlace {
  int shard = 0, num_shards = 1;
};
// Nothing if it is not what data_path() makes, with a shard below the number of
// shards. Thread-safe.
std::optional<ShardPlace> parse_data_path(std::string_view path);

// InvalidArgument if the key cannot be one; Unimplemented for handles, which
// cannot be saved. Thread-safe.
Status check_savable(std::string_view key, const Tensor& tensor);

// Appends a tensor of host memory to a shard's file, and returns its entry.
// Cancelled if `stopped`, which may be null, becomes true; errors of files.
// REQUIRES: check_savable() allows it.
Result<BundleEntry> append_tensor(AtomicFile& file, std::string key, int shard,
                                  const Tensor& tensor,
                                  const std::atomic<bool>* stopped = nullptr);

// The checksum of the file's first `size` bytes, or, if there are more than a
// few MiB, of pieces of them, at places that depend on `seed`. DataLoss if it
// ends before. `path` is for errors.
Result<uint32_t> sampled_checksum(const ReadableFile& file, uint64_t size,
                                  uint64_t seed, std::string_view path);

// A shard under its temporary name, which is removed with it unless its writer
// calls file->leave().
struct WrittenShard {
  std::unique_ptr<AtomicFile> file;  // finished
  std::vector<BundleEntry> entries;
  uint64_t size = 0;
  uint32_t checksum = 0;  // sampled, by the number of the save
};

// Writes the tensors as the shard of that path, under the temporary name of the
// save. Releases each tensor once it is written. InvalidArgument for a path
// that is not that of a shard, or keys that do not fit the tensors; Cancelled
// if `stopped` becomes true; AlreadyExists if the file is there; errors of
// check_savable() and of files.
Result<WrittenShard> write_shard(const std::string& path, uint64_t save,
                                 std::span<const std::string> keys,
                                 std::span<Tensor> tensors,
                                 const std::atomic<bool>& stopped,
                                 const WriteOptions& options);

// What the saver knows of a shard that another process has written.
struct ForeignShard {
  std::string writer;  // for errors
  std::string path;    // temporary, as the saver sees it
  int shard = 0;
  uint64_t size = 0;
  uint32_t checksum = 0;
  std::vector<BundleEntry> entries;
};

// Checks that the file is the one that its writer means. FailedPrecondition if
// it is not there, DataLoss if it is another one; errors of files.
Status check_shard(const ForeignShard& shard, uint64_t save, FileSystem& files);

}  // namespace tagflow::checkpoint
