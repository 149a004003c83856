// Disk: a folder of files in memory, which outlives the processes that write
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/files/files.h"
#include "devices/files/folder_lock.h"
#include "tests/net/protocol/sim_world.h"

namespace tagflow::net::simulated {

// All files are of one folder. A file's bytes are *durable* once it is synced,
// and so are names once the folder is. A process that is killed loses nothing
// that it has written; a loss of power leaves what is durable, and of the rest
// what chance will: the first part of a file, perhaps as zeros; the first
// changes of names, or some of them. A rename is one change.
class Disk {
 public:
  static constexpr const char* kFolder = "/disk";

  struct Node {
    std::string bytes;
    size_t num_synced = 0;
    int64_t written = 0;      // in nanoseconds
    bool is_damaged = false;  // by damage()
  };
  using NodePtr = std::shared_ptr<Node>;
  using Names = std::map<std::string, NodePtr>;

  enum class Change : uint8_t { kCreate, kWrite, kSync, kName, kRemove };
  // Is told what a process is about to change.
  std::function<void(Change change, const std::string& path)> on_change;

  // Faults.
  bool is_full = false;
  Duration slowness{};  // the longest time of an operation, beyond the usual
  uint64_t num_failures = 0;  // of operations that are to come

  const Names& names() const { return names_; }
  NodePtr find(const std::string& path) const;
  // Whether the file, and its name, survive in any case, but for damage.
  bool is_durable(const std::string& path) const;
  void lose_power(Random& random);
  // The file loses its end, or, if `may_change`, has another byte. REQUIRES: it
  // is there, and not empty.
  void damage(const std::string& path, Random& random, bool may_change);

  // Operations, which take no time.
  void name(const std::string& from, const std::string& to, NodePtr node);
  void remove(const std::string& path);
  void sync_folder();

  // The process that has the lock of the folder; 0: none has it.
  uint64_t locked_by = 0;

 private:
  // The file `to` is `node` now, and `from` is none any more. Either may be
  // empty.
  struct Renaming {
    std::string from, to;
    NodePtr node;
  };
  static void apply(const Renaming& renaming, Names& names);

  Names names_, durable_names_;
  std::vector<Renaming> changes_;  // of names that are not durable
};

// The file system of one process. Each operation takes virtual time, and the
// process may end in it.
class DiskFiles : public checkpoint::FileSystem {
 public:
  // `pass` returns after so much time. `clock` is ahead of that of the world by
  // this. The others outlive it.
  DiskFiles(World& world, Disk& disk, uint64_t process, Duration ahead,
            std::function<void(Duration)> pass)
      : world_(world),
        disk_(disk),
        process_(process),
        ahead_(ahead),
        pass_(std::move(pass)) {}

  Result<std::unique_ptr<checkpoint::ReadableFile>> open(
      const std::string& path) override;
  Result<std::unique_ptr<checkpoint::WritableFile>> create(
      const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  bool exists(const std::string& path) override;
  Status make_folder(const std::string& path) override;
  Status sync_folder(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) override;
  bool is_folder(const std::string& path) override;
  bool is_same_folder(const std::string& a, const std::string& b) override;
  int64_t written_at(const std::string& path) override;
  Result<std::unique_ptr<checkpoint::FolderLock>> lock_folder(
      const std::string& folder) override;
  double now() override;

 private:
  class Written;
  class Lock;
  using Change = Disk::Change;
  // Does `effect`, unless the operation fails, at its begin or its end.
  Status perform(Change change, const std::string& path, bool needs_room,
                 const std::function<void()>& effect);
  int64_t stamp() const {
    return (world_.now() + ahead_).time_since_epoch() /
           std::chrono::nanoseconds(1);
  }

  World& world_;
  Disk& disk_;
  const uint64_t process_;
  const Duration ahead_;
  const std::function<void(Duration)> pass_;
  // Of planted bugs.
  std::vector<std::pair<std::string, std::string>> postponed_;
};

}  // namespace tagflow::net::simulated
