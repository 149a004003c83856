#include "devices/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tagflow::checkpoint {
namespace {

// Maps errno to a status.
Status folder_error(std::string_view what, const std::string& folder) {
  const int number = errno;
  return error(number == EACCES || number == EROFS ? Code::kPermissionDenied
                                                   : Code::kFailedPrecondition,
               "[checkpoint] cannot {} the folder \"{}\": {}", what, folder,
               std::strerror(number));
}

}  // namespace

Result<std::unique_ptr<FolderLock>> FolderLock::take(
    const std::string& folder) {
  // Allocates before the lock exists, or an error would leave it locked.
  std::unique_ptr<FolderLock> lock(new FolderLock(folder));
  lock->descriptor_ =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock->descriptor_ < 0) return folder_error("open", folder);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return folder_error("write to", folder);
  int result = 0;
  do {
    result = ::flock(lock->descriptor_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK)
    return error(Code::kFailedPrecondition,
                 "[checkpoint] somebody else is saving to the folder \"{}\"",
                 folder);
  lock->is_exclusive_ = result == 0;
  return lock;
}

Status FolderLock::check_place() const {
  struct stat locked {};
  struct stat named {};
  if (::fstat(descriptor_, &locked) == 0 &&
      ::stat(folder_.c_str(), &named) == 0 && locked.st_dev == named.st_dev &&
      locked.st_ino == named.st_ino)
    return {};
  return error(Code::kFailedPrecondition,
               "[checkpoint] the folder \"{}\" was moved or removed since it "
               "was opened",
               folder_);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tagflow::checkpoint
