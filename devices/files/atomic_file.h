// AtomicFile: a file that appears as a whole or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "devices/files/files.h"
#include "graph/status.h"
#include "graph/unfinished_file.h"

namespace tagflow::checkpoint {

// Options for writing files.
struct WriteOptions {
  // Outlives every use; null: local_files().
  FileSystem* files = nullptr;
  // Waits for the disk, so that published files survive a crash of the machine,
  // and not only of the process.
  bool sync = true;
  // Makes the folder of a file, and those above it, if they are missing.
  bool makes_folders = true;

  FileSystem& file_system() const {
    return files != nullptr ? *files : local_files();
  }
};

// Life cycle: *open* from create() on, appended to under a temporary name
// beside its target; *finished* when all of it is on the disk; *published* when
// it has its name. An unpublished file is removed by the destructor, and by
// remove_unfinished_files(); if the process is killed, by the next writer of
// the target (Note [Temporary files] in graph/temporary_file.h).
//
// Thread-compatible.
class AtomicFile {
 public:
  // NotFound if the folder is missing, and the options do not make it.
  static Result<std::unique_ptr<AtomicFile>> create(
      std::string target, const WriteOptions& options);
  // As above, under the given temporary name. AlreadyExists if it is taken.
  static Result<std::unique_ptr<AtomicFile>> create_as(
      std::string temporary, std::string target, const WriteOptions& options);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // For a large file: if it is to be synced, it goes to the disk at once (Note
  // [Past the cache] in direct_output.h), which takes 8 MiB of memory.
  // REQUIRES: open, and nothing is appended.
  void write_through();
  // Small pieces are buffered, large ones written directly. After an error the
  // file cannot be finished. REQUIRES: open.
  Status append(std::string_view bytes);
  // As above, and extends a checksum by the bytes while they are in the cache.
  Status append(std::string_view bytes, uint32_t& crc);
  // REQUIRES: open.
  Status finish();
  // Gives it its name; sync_folder() makes it durable. REQUIRES: finished.
  Status publish();
  // Leaves it under its temporary name, for somebody else to publish.
  // REQUIRES: finished.
  void leave();
  // A signal that ends the process does not remove it any more.
  void keep_after_signals() { unfinished_.reset(); }

  // The number of bytes appended.
  uint64_t size() const { return size_; }
  const std::string& target() const { return target_; }
  const std::string& temporary() const { return temporary_; }
  bool is_published() const { return published_; }

 private:
  AtomicFile(std::string target, const WriteOptions& options);
  Status write_all(std::string_view bytes);
  Status flush();

  const std::string target_;
  std::string temporary_;
  std::optional<UnfinishedFile> unfinished_;  // of the temporary name
  const WriteOptions options_;
  std::unique_ptr<WritableFile> file_;  // has the lock of it; null if published
  std::string buffer_;
  uint64_t size_ = 0;
  Status failed_;
  bool exists_ = false;  // under its temporary name
  bool published_ = false;
};

// Writes, finishes and publishes a small file.
Status write_atomically(const std::string& path, std::string_view bytes,
                        const WriteOptions& options);

}  // namespace tagflow::checkpoint
