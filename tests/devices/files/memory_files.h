// Files in memory, which fail and lose data as a test requests.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "devices/files/files.h"

namespace tagflow::checkpoint {

// Counts what changes it: makings of files, writes, syncs, renamings, removals.
// The k-th such operation, and maybe all that follow, can be made to fail.
//
// A file's bytes are *durable* once it is synced, its name once its folder is:
// that is what the end of the machine leaves. Thread-compatible.
class MemoryFiles final : public FileSystem {
 public:
  MemoryFiles() = default;

  // The operation of that number fails, counted from 0; -1: none.
  int failing = -1;
  // So do all after it, as in a process that was killed there.
  bool is_crash = false;
  // A write takes no more than that at a time.
  size_t most_per_write = SIZE_MAX;
  // How many operations there were.
  int operations = 0;

  // What there is, by path.
  std::map<std::string, std::string> contents() const;
  // Adds or replaces a file, which is durable.
  void put(const std::string& path, std::string bytes);
  // What is left when the machine ends: what is durable.
  void lose_power();
  // Forgets faults and counts.
  void recover();

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  bool exists(const std::string& path) override;
  Status make_folder(const std::string& path) override;
  Status sync_folder(const std::string& path) override;

 private:
  friend class MemoryWritableFile;
  struct Node {
    std::string bytes, durable;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  Status count();

  Names names_, durable_names_;
};

}  // namespace tagflow::checkpoint
