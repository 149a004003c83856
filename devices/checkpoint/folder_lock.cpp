#include "devices/checkpoint/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tagflow::checkpoint {

Result<std::unique_ptr<FolderLock>> FolderLock::take(
    const std::string& folder) {
  const int descriptor =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return error(
        errno == EACCES ? Code::kPermissionDenied : Code::kFailedPrecondition,
        "[checkpoint] cannot open the folder \"{}\": {}", folder,
        std::strerror(errno));
  int result = 0;
  do {
    result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor);
    return error(Code::kFailedPrecondition,
                 "[checkpoint] somebody else is saving to the folder \"{}\"",
                 folder);
  }
  return std::unique_ptr<FolderLock>(new FolderLock(descriptor, result == 0));
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace tagflow::checkpoint
