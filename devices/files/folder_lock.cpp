#include "devices/files/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "graph/write_error.h"

namespace tagflow::checkpoint {
namespace {

// Maps errno to a status.
Status folder_error(std::string_view what, const std::string& folder) {
  const int number = errno;
  return error(number == EACCES || number == EROFS
                   ? Code::kPermissionDenied
                   : code_of_write(number, Code::kFailedPrecondition),
               "[checkpoint] cannot {} the folder \"{}\": {}", what, folder,
               std::strerror(number));
}

class LocalLock final : public FolderLock {
 public:
  explicit LocalLock(std::string folder) : folder_(std::move(folder)) {}
  ~LocalLock() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Status take();
  Status check_place() const override;
  bool is_exclusive() const override { return is_exclusive_; }

 private:
  const std::string folder_;
  int descriptor_ = -1;
  bool is_exclusive_ = false;
};

Status LocalLock::take() {
  descriptor_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) return folder_error("open", folder_);
  if (::faccessat(AT_FDCWD, folder_.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return folder_error("write to", folder_);
  int result = 0;
  do {
    result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno == EWOULDBLOCK)
    return error(Code::kFailedPrecondition,
                 "[checkpoint] somebody else is saving to the folder \"{}\"",
                 folder_);
  is_exclusive_ = result == 0;
  return {};
}

Status LocalLock::check_place() const {
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

}  // namespace

Result<std::unique_ptr<FolderLock>> FolderLock::take(
    const std::string& folder) {
  // Allocates before the lock exists, or an error would leave it locked.
  auto lock = std::make_unique<LocalLock>(folder);
  TAGFLOW_RETURN_IF_ERROR(lock->take());
  return std::unique_ptr<FolderLock>(std::move(lock));
}

}  // namespace tagflow::checkpoint
