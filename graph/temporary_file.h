// Temporary names of files and folders that are being written, beside their
// targets: "TARGET.tmp-tagflow-NUMBER".
//
// Note [Temporary files]
// A file that is written gets its name when it is whole. Until then it has a
// temporary name, and its writer holds the system's lock of it (flock()). The
// system drops the lock when the process ends, in whatever way: so a temporary
// file without a lock is one that a killed process has left, on whichever
// machine it ran, and the next writer of the same target removes it. Others
// leave no file, since signals are handled (graph/unfinished_file.h). The
// number is the first one that is free: a file that was left is found without a
// search. On a file system without locks nothing is removed, and others take
// the next number.
//
// The lock is held until the file has its name or is removed. A writer that has
// made a file may find, once it has the lock, that somebody who had it before
// has removed the file; then it makes another.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "graph/unfinished_file.h"

namespace tagflow {

// Whether it is a temporary name of some target. Thread-safe.
bool is_temporary_name(std::string_view name);

// The temporary name of that number. Thread-safe.
std::string temporary_name(std::string_view target, uint64_t number);

// Calls `is_taken` with temporary names of the target until it returns false,
// or very many are taken. It tries to make the file, locks it, and returns
// whether somebody else has the name. Files that killed processes left are
// removed if `removes_left`: the names must be paths of this machine.
// Thread-safe.
void try_temporary_names(
    std::string_view target,
    const std::function<bool(const std::string& name)>& is_taken,
    bool removes_left = true);

// Locks the file or folder that its caller has just made with a temporary name,
// until the descriptor is closed. False if it was removed meanwhile.
// Thread-safe.
bool lock_temporary(int descriptor, const std::string& name);

// An empty file or folder beside its target, which this object has locked.
//
// Life cycle: *made* by the constructor, unless error() says why not; then its
// owner fills it, renames it to its target or removes it, and destroys this. A
// signal that ends the process removes it (see UnfinishedFile), unless it comes
// after forget().
// Thread-compatible.
class TemporaryFile {
 public:
  enum class Kind : uint8_t { kFile, kFolder };
  TemporaryFile(std::string_view target, Kind kind, mode_t mode);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  // An errno; 0: it is made.
  int error() const { return error_; }
  const std::string& path() const { return path_; }
  // Called before it is renamed or removed: then another may get the name.
  void forget() { unfinished_.reset(); }

 private:
  // Returns an errno.
  int make(Kind kind, mode_t mode);

  std::string path_;
  int descriptor_ = -1;
  int error_ = 0;
  std::optional<UnfinishedFile> unfinished_;
};

}  // namespace tagflow
