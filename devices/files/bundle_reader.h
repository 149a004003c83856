// BundleReader: the tensors of a bundle, a checkpoint of format V2.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/bundle_index.h"
#include "devices/files/files.h"
#include "graph/allocator.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

// Every checksum of the bytes read is verified, and no length in a file is
// trusted: allocations never exceed what the file's bytes can fill.
//
// Thread-safe. Files stay open from their first use on.
class BundleReader {
 public:
  // Reads the index. NotFound if it is missing; Unimplemented if the
  // prefix is the name of a V1 checkpoint; errors of parse_bundle_index().
  // `files` outlives the reader.
  static Result<std::unique_ptr<BundleReader>> open(
      std::string prefix, FileSystem& files = local_files());

  // Of a part of a bundle: an index that another process has read. `files`
  // outlives the reader.
  static std::unique_ptr<BundleReader> of_index(
      std::string prefix, BundleIndex index, FileSystem& files = local_files());

  const std::string& prefix() const { return prefix_; }
  int num_shards() const { return index_.num_shards; }
  // In ascending order of keys; includes slices, which come first.
  std::span<const BundleEntry> entries() const { return index_.entries; }
  // The entries of tensors only.
  std::span<const BundleEntry> tensors() const;
  // Null if it does not exist.
  const BundleEntry* find(std::string_view key) const;
  // find() for a tensor, or NotFound, which lists the existing ones.
  Result<const BundleEntry*> find_tensor(std::string_view name) const;

  // The tensor, assembled if it is in slices. NotFound, DataLoss if its
  // bytes are damaged or missing, Unimplemented for a type that we do not
  // support. `allocator` is of host-visible memory.
  Result<Tensor> read(std::string_view name,
                      Allocator& allocator = host_allocator()) const;
  // A slice of it. InvalidArgument if it is not within the tensor, or not
  // covered by the saved slices.
  Result<Tensor> read_slice(std::string_view name, const TensorSlice& slice,
                            Allocator& allocator = host_allocator()) const;

  // NotFound or DataLoss if a file is missing, or ends before the bytes that
  // the index lists. Reads no tensor.
  Status check_complete() const;

 private:
  BundleReader(std::string prefix, FileSystem& files, BundleIndex index)
      : prefix_(std::move(prefix)), files_(files), index_(std::move(index)) {}

  // The file of an entry, after a check that it has all of its bytes.
  Result<const ReadableFile*> file_of(const BundleEntry& entry) const;
  Result<const ReadableFile*> shard(int number) const;
  // Checks that a file of that size has all bytes of the entry.
  Status check_end(const BundleEntry& entry, uint64_t file_size) const;
  Status read_bytes(const BundleEntry& entry, uint64_t skipped,
                    std::span<char> bytes) const;
  Result<Tensor> read_entry(const BundleEntry& entry,
                            Allocator& allocator) const;
  struct Part;
  Result<std::vector<Part>> parts_of(const BundleEntry& entry,
                                     const TensorSlice& target) const;
  Status copy_part(const Part& part, const TensorSlice& target,
                   Tensor& tensor) const;

  const std::string prefix_;
  FileSystem& files_;
  const BundleIndex index_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::map<int, std::unique_ptr<ReadableFile>> shards_;
};

// Whether the file is a V1 checkpoint: a table without an index beside it.
bool is_v1_checkpoint(const std::string& path, FileSystem& files);

}  // namespace tagflow::checkpoint
