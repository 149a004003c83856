// FolderLock: ensures that one writer at a time saves to a folder.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "graph/status.h"

namespace tagflow::checkpoint {

// The system's own lock of the folder: it leaves no file, and ends with the
// process in any case. On a file system without locks, it excludes nobody.
class FolderLock {
 public:
  // FailedPrecondition if another lock, of this process or another, exists;
  // errors of opening the folder, and PermissionDenied if it is not
  // writable. Thread-safe.
  static Result<std::unique_ptr<FolderLock>> take(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  // FailedPrecondition if the folder's name no longer refers to the locked
  // folder: it was moved or removed, and a new one may be somebody else's.
  // Thread-safe.
  Status check_place() const;
  // Whether others are excluded.
  bool is_exclusive() const { return is_exclusive_; }

 private:
  explicit FolderLock(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  int descriptor_ = -1;
  bool is_exclusive_ = false;
};

}  // namespace tagflow::checkpoint
