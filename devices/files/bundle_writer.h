// BundleWriter: writes a bundle, a checkpoint of format V2.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/files/atomic_file.h"
#include "devices/files/bundle_index.h"
#include "devices/files/bundle_shard.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

// Life cycle: *open* from create() on, *finished* when all is on the disk under
// temporary names, *published* when the files have their names. The destructor
// removes unpublished files.
//
// Note [Publishing]
// Files become a checkpoint by their index. So it is the last to get its name,
// after all others have theirs on the disk: an index always has all of its
// files, at whatever moment the process or the machine ended. If a checkpoint
// of the same prefix is replaced, its index is removed first: the shards of the
// two have the same names, and must not be mixed. So in between there is no
// checkpoint. To avoid that, give each checkpoint its own prefix, as savers do,
// which number them.
//
// Thread-compatible.
class BundleWriter {
 public:
  // InvalidArgument for an invalid prefix ("", "folder/"). REQUIRES: num_shards
  // >= 1.
  static Result<std::unique_ptr<BundleWriter>> create(
      std::string prefix, int num_shards, const WriteOptions& options);
  // For a bundle whose shards from 1 on come from other processes: Note [Shards
  // of other processes] in bundle_shard.h.
  static Result<std::unique_ptr<BundleWriter>> create_first(
      std::string prefix, int num_shards, const WriteOptions& options);
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;
  ~BundleWriter();

  // Writes a tensor of host memory to the shard with the fewest bytes.
  // InvalidArgument if the name is taken, empty, or begins with a zero byte;
  // Unimplemented for handles, which cannot be saved; errors of files, after
  // which nothing else can be added. REQUIRES: open.
  Status add(std::string_view name, const Tensor& tensor);
  // Writes a slice of a tensor that is of shape `whole`. The same errors, and
  // InvalidArgument if the tensor does not have the shape of the slice, or
  // does not match the earlier slices of the name, or repeats one.
  Status add_slice(std::string_view name, const Shape& whole,
                   const TensorSlice& slice, const Tensor& tensor);

  // Adds the shard that another process has written, which check_shard() has
  // found: publish() gives it its name. InvalidArgument if it does not say of
  // each tensor what can be, or is not a shard that is missing. REQUIRES: open.
  Status adopt(ForeignShard shard);

  // InvalidArgument if slices of a tensor overlap, or shards of other processes
  // are missing. REQUIRES: open.
  Status finish();
  // After an error no new file is left; an earlier checkpoint may be gone.
  // REQUIRES: finished.
  Status publish();

 private:
  struct Adopted {
    std::string temporary, target;
    bool is_published = false;
  };
  BundleWriter(std::string prefix, int num_shards, const WriteOptions& options)
      : prefix_(std::move(prefix)),
        num_shards_(num_shards),
        options_(options) {}
  static Result<std::unique_ptr<BundleWriter>> make(
      std::string prefix, int own_shards, int num_shards,
      const WriteOptions& options);
  Status write(std::string key, const Tensor& tensor);
  Status publish_files();

  const std::string prefix_;
  const int num_shards_;
  const WriteOptions options_;
  std::vector<std::unique_ptr<AtomicFile>> shards_;  // its own, the first ones
  std::map<int, Adopted> adopted_;  // by the numbers of the shards
  std::map<std::string, BundleEntry, std::less<>> entries_;
  std::unique_ptr<AtomicFile> index_;  // when finished
};

// Checks that files of a checkpoint can have this prefix. Thread-safe.
Status check_prefix(std::string_view prefix);

// Removes the index of a checkpoint that is about to be replaced, if it exists:
// Note [Publishing].
Status remove_index(const std::string& prefix, const WriteOptions& options);

}  // namespace tagflow::checkpoint
