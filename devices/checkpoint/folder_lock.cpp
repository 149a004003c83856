#include "devices/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tagflow::checkpoint {

Result<std::unique_ptr<FolderLock>> FolderLock::take(
    const std::string& folder) {
  // Before there is a lock that nobody would let go of.
  std::unique_ptr<FolderLock> lock(new FolderLock);
  lock->descriptor_ =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock->descriptor_ < 0)
    return error(
        errno == EACCES ? Code::kPermissionDenied : Code::kFailedPrecondition,
        "[checkpoint] cannot open the folder \"{}\": {}", folder,
        std::strerror(errno));
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

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tagflow::checkpoint
