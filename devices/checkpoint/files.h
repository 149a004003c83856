// The operating system's files, behind an interface through which tests let
// writes fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::checkpoint {

// Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // As it was when the file was opened.
  virtual uint64_t size() const = 0;
  // Fills as much of `bytes` as the file has from `offset` on; returns how much
  // that is, which is less only at its end.
  virtual Result<size_t> read(uint64_t offset, std::span<char> bytes) const = 0;
};

// Closed with its end. Thread-compatible.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Appends some of the bytes, at least one; returns how many.
  // REQUIRES: !bytes.empty()
  virtual Result<size_t> write(std::string_view bytes) = 0;
  // Returns when what was written would survive the end of the machine.
  virtual Status sync() = 0;
};

// What is done to files and folders. Errors name the path: NotFound where there
// is none, as behind a link to itself, PermissionDenied, ResourceExhausted
// where the disk is full, InvalidArgument where it is no regular file, Unknown
// for any other. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<ReadableFile>> open(
      const std::string& path) = 0;
  // A new file; AlreadyExists where there is one.
  virtual Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) = 0;
  // Replaces `to` where it exists.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  // Also where it cannot be told: what may be there is not written over.
  virtual bool exists(const std::string& path) = 0;
  // The folder and those above it, where they are missing.
  virtual Status make_folder(const std::string& path) = 0;
  // Returns when names that were given and taken in the folder would survive
  // the end of the machine.
  virtual Status sync_folder(const std::string& path) = 0;
};

// The real one. Lives as long as the process.
FileSystem& local_files();

// The folder in which the path's file is: "." for a plain name.
std::string folder_of(const std::string& path);

// What is in the folder, without "." and "..", in any order. Errors as those
// of files. Thread-safe.
Result<std::vector<std::string>> names_in(const std::string& folder);

// Reads exactly `bytes`; DataLoss, which calls the file `what`, where it ends
// before.
Status read_exactly(const ReadableFile& file, uint64_t offset,
                    std::span<char> bytes, std::string_view what);
// Asks the system for large pages where memory that is about to be filled is
// large: to make small ones takes longer than to read what fills them.
void prepare_memory(std::span<char> bytes);
// The whole file. ResourceExhausted where it is larger than `limit`.
Result<std::string> read_whole(FileSystem& files, const std::string& path,
                               uint64_t limit);

}  // namespace tagflow::checkpoint
