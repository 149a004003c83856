// FolderLock: ensures that one writer at a time saves to a folder.
#pragma once

#include <memory>
#include <string>

#include "graph/status.h"

namespace tagflow::checkpoint {

// Held until its end.
class FolderLock {
 public:
  // The system's own lock of a folder of this machine: it leaves no file, and
  // ends with the process in any case. On a file system without locks, it
  // excludes nobody. FailedPrecondition if another lock, of this process or
  // another, exists; errors of opening the folder, and PermissionDenied if it
  // is not writable. Thread-safe.
  static Result<std::unique_ptr<FolderLock>> take(const std::string& folder);
  FolderLock() = default;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  virtual ~FolderLock() = default;

  // FailedPrecondition if the folder's name no longer refers to the locked
  // folder: it was moved or removed, and a new one may be somebody else's.
  // Thread-safe.
  virtual Status check_place() const = 0;
  // Whether others are excluded.
  virtual bool is_exclusive() const = 0;
};

}  // namespace tagflow::checkpoint
