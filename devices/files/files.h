// The operating system's files, behind an interface through which tests make
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

class FolderLock;

// Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // The size when the file was opened.
  virtual uint64_t size() const = 0;
  // Fills as much of `bytes` as the file has from `offset` on; returns the
  // number of bytes, which is smaller only at the file's end.
  virtual Result<size_t> read(uint64_t offset, std::span<char> bytes) const = 0;
};

// The destructor closes it. Thread-compatible.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Appends some of the bytes, at least one; returns how many.
  // REQUIRES: !bytes.empty()
  virtual Result<size_t> write(std::string_view bytes) = 0;
  // What is written goes to the disk at once, if the file system can do that:
  // sync() will be called, and has less to wait for. The error of a write may
  // be returned by a later one, or by sync(). Nothing may be written after
  // sync(). REQUIRES: nothing was written yet.
  virtual void write_through() {}
  // Returns when the written bytes would survive a crash of the machine.
  virtual Status sync() = 0;
};

// Operations on files and folders. Errors name the path: NotFound if it does
// not exist, as behind a link to itself, PermissionDenied, ResourceExhausted
// if the disk is full, InvalidArgument if it is not a regular file, Unknown
// for any other. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual Result<std::unique_ptr<ReadableFile>> open(
      const std::string& path) = 0;
  // A new file; AlreadyExists if the path exists. If it is a temporary name,
  // the file is locked until it is closed.
  virtual Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) = 0;
  // Replaces `to` if it exists.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  // True also if it is unknown: a file that may exist is not overwritten.
  virtual bool exists(const std::string& path) = 0;
  // Creates the folder and those above it, if they are missing.
  virtual Status make_folder(const std::string& path) = 0;
  // Returns when names added and removed in the folder would survive a crash of
  // the machine.
  virtual Status sync_folder(const std::string& path) = 0;

  // What follows is of this machine's folders and clock, unless a file system
  // has its own.

  // As names_in() below.
  virtual Result<std::vector<std::string>> list(const std::string& folder);
  virtual bool is_folder(const std::string& path);
  // Whether both paths lead to one folder; false if that is unknown.
  virtual bool is_same_folder(const std::string& a, const std::string& b);
  // When the file was written last, in nanoseconds of a clock of its own; the
  // smallest number if that is unknown.
  virtual int64_t written_at(const std::string& path);
  // As FolderLock::take().
  virtual Result<std::unique_ptr<FolderLock>> lock_folder(
      const std::string& folder);
  // In seconds since 1970.
  virtual double now();
};

// The real one. Lives as long as the process.
FileSystem& local_files();

// The folder of the path's file: "." for a plain name.
std::string folder_of(const std::string& path);

// The names in the folder, without "." and "..", in any order. Errors as those
// of files. Thread-safe.
Result<std::vector<std::string>> names_in(const std::string& folder);

// Reads exactly `bytes`; DataLoss, with the name `what`, if the file ends
// before.
Status read_exactly(const ReadableFile& file, uint64_t offset,
                    std::span<char> bytes, std::string_view what);
// Requests large pages from the system for large memory that is about to be
// filled: small pages take longer to make than their contents to read.
void prepare_memory(std::span<char> bytes);
// The whole file. ResourceExhausted if it is larger than `limit`.
Result<std::string> read_whole(FileSystem& files, const std::string& path,
                               uint64_t limit);

}  // namespace tagflow::checkpoint
