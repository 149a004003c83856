#include "graph/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tagflow {
namespace {

constexpr std::string_view kMark = ".tmp-tagflow-";

// Whether nobody else has the lock now, and the file system has locks.
bool try_lock(int descriptor) {
  int result = 0;
  do {
    result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

// Whether the path is still that of the descriptor.
bool is_at(const std::string& path, int descriptor) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 &&
         ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

// Removes what a killed process left; false if there is nothing, or somebody
// writes it, or that is unknown.
bool remove_left(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 ||
      !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
    return false;
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return false;
  std::error_code code;
  const bool is_removed = try_lock(descriptor) && is_at(path, descriptor) &&
                          std::filesystem::remove_all(path, code) > 0 && !code;
  ::close(descriptor);
  return is_removed;
}

}  // namespace

bool is_temporary_name(std::string_view name) {
  const size_t mark = name.rfind(kMark);
  if (mark == name.npos) return false;
  const std::string_view number = name.substr(mark + kMark.size());
  return !number.empty() && std::ranges::all_of(number, [](char c) {
    return c >= '0' && c <= '9';
  });
}

std::string temporary_name(std::string_view target, uint64_t number) {
  return fmt::format("{}{}{}", target, kMark, number);
}

void try_temporary_names(
    std::string_view target,
    const std::function<bool(const std::string& name)>& is_taken,
    bool removes_left) {
  constexpr uint64_t kMostNames = 10'000;
  for (uint64_t i = 0; i < kMostNames; ++i) {
    const std::string name = temporary_name(target, i);
    if (!is_taken(name)) return;
    if (removes_left && remove_left(name) && !is_taken(name)) return;
  }
}

bool lock_temporary(int descriptor, const std::string& name) {
  // It fails if another writer has just found the file without a lock, and will
  // remove it; or if there are no locks.
  if (!try_lock(descriptor) && errno == EWOULDBLOCK) return false;
  return is_at(name, descriptor);
}

TemporaryFile::TemporaryFile(std::string_view target, Kind kind, mode_t mode) {
  const MakingUnfinishedFile making;
  try_temporary_names(target, [&](const std::string& name) {
    path_ = name;
    error_ = make(kind, mode);
    return error_ == EEXIST;
  });
  // Not before: it may be another's.
  if (error_ == 0) unfinished_.emplace(path_);
}

int TemporaryFile::make(Kind kind, mode_t mode) {
  if (kind == Kind::kFile) {
    descriptor_ =
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ < 0) return errno;
  } else {
    if (::mkdir(path_.c_str(), mode) != 0) return errno;
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    // As if it was removed by another writer already.
    if (descriptor_ < 0) return errno == ENOENT ? EEXIST : errno;
  }
  if (lock_temporary(descriptor_, path_)) return 0;
  ::close(descriptor_);
  descriptor_ = -1;
  return EEXIST;
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tagflow
