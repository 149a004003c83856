// BundleWriter: writes a bundle, a checkpoint of format V2.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/checkpoint/atomic_file.h"
#include "devices/checkpoint/bundle_index.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

// Life cycle: *open* from create() on, *finished* when all is on the disk under
// temporary names, *published* when the files have their names. Whatever was
// not published is removed with the writer.
//
// Note [Publishing]
// The index is what makes files a checkpoint. So it is the last to get its
// name, after all others have theirs on the disk: whoever finds an index, at
// whatever moment the process or the machine ended, has all of it. Where a
// checkpoint of the same prefix is replaced, its index goes first: the shards
// of the two have the same names, and must not be mixed. So in between there is
// none; who cannot bear that gives each checkpoint a prefix of its own, as
// savers do, which number them.
//
// Thread-compatible.
class BundleWriter {
 public:
  // InvalidArgument for a prefix that cannot have files ("", "folder/").
  // REQUIRES: num_shards >= 1.
  static Result<std::unique_ptr<BundleWriter>> create(
      std::string prefix, int num_shards, const WriteOptions& options);
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;
  ~BundleWriter();

  // Writes a tensor of host memory to the shard with the fewest bytes.
  // InvalidArgument where the name is taken, empty, or begins with a zero byte,
  // Unimplemented for handles, which no file can hold; errors of files, after
  // which nothing else can be added. REQUIRES: open.
  Status add(std::string_view name, const Tensor& tensor);
  // Writes a slice of a tensor that is of shape `whole`. The same errors, and
  // InvalidArgument where the tensor has not the shape of the slice, or other
  // slices of the name are of another tensor, or the same.
  Status add_slice(std::string_view name, const Shape& whole,
                   const TensorSlice& slice, const Tensor& tensor);

  // InvalidArgument where slices of a tensor overlap. REQUIRES: open.
  Status finish();
  // After an error nothing of it is left; what was there before may be gone.
  // REQUIRES: finished.
  Status publish();

 private:
  BundleWriter(std::string prefix, const WriteOptions& options)
      : prefix_(std::move(prefix)), options_(options) {}
  Status check_new(std::string_view name, const Tensor& tensor) const;
  Status write(std::string key, const Tensor& tensor);
  Status publish_files();

  const std::string prefix_;
  const WriteOptions options_;
  std::vector<std::unique_ptr<AtomicFile>> shards_;
  std::map<std::string, BundleEntry, std::less<>> entries_;
  std::unique_ptr<AtomicFile> index_;  // when finished
};

// That files of a checkpoint can be named so. Thread-safe.
Status check_prefix(std::string_view prefix);

// Removes the index of a checkpoint that is about to be replaced, if there is
// one: Note [Publishing].
Status remove_index(const std::string& prefix, const WriteOptions& options);

}  // namespace tagflow::checkpoint
