// FolderLock: a folder that one writer at a time saves to.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "graph/status.h"

namespace tagflow::checkpoint {

// The system's own lock of the folder: it leaves no file, and ends with the
// process, however that ends. Where a file system has no locks, nobody is kept
// out.
class FolderLock {
 public:
  // FailedPrecondition where another one, of this process or another, has it;
  // errors of opening the folder, and PermissionDenied where it cannot be
  // written to. Thread-safe.
  static Result<std::unique_ptr<FolderLock>> take(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  // FailedPrecondition where the folder's name no longer leads to what is
  // locked: it was moved or removed, and another one may be somebody else's.
  // Thread-safe.
  Status check_place() const;
  // Whether others are kept out.
  bool is_exclusive() const { return is_exclusive_; }

 private:
  explicit FolderLock(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
  int descriptor_ = -1;
  bool is_exclusive_ = false;
};

}  // namespace tagflow::checkpoint
