#include "devices/files/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "devices/files/direct_output.h"
#include "devices/files/folder_lock.h"
#include "graph/temporary_file.h"
#include "graph/write_error.h"

namespace tagflow::checkpoint {
namespace {

Code code_of_errno(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kPermissionDenied;
    case EEXIST:
      return Code::kAlreadyExists;
    case EISDIR:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    default:
      return code_of_write(number, Code::kUnknown);
  }
}

// Maps errno to a status.
Status file_error(std::string_view what, const std::string& path) {
  const int number = errno;
  return error(code_of_errno(number), "[checkpoint] cannot {} \"{}\": {}", what,
               path, std::strerror(number));
}

// Closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

class LocalReadableFile final : public ReadableFile {
 public:
  LocalReadableFile(Descriptor descriptor, std::string path, uint64_t size)
      : descriptor_(std::move(descriptor)),
        path_(std::move(path)),
        size_(size) {}

  uint64_t size() const override { return size_; }

  Result<size_t> read(uint64_t offset, std::span<char> bytes) const override {
    size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = ::pread(descriptor_.get(), bytes.data() + done,
                                    bytes.size() - done, off_t(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_error("read", path_);
      if (count == 0) break;
      done += size_t(count);
    }
    return done;
  }

 private:
  const Descriptor descriptor_;
  const std::string path_;
  const uint64_t size_;
};

class LocalWritableFile final : public WritableFile {
 public:
  explicit LocalWritableFile(std::string path) : path_(std::move(path)) {}

  Status create() {
    constexpr mode_t kMode = 0666;  // reduced by the umask
    descriptor_ = Descriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (descriptor_.get() < 0) return file_error("create", path_);
    if (!is_temporary_name(path_) || lock_temporary(descriptor_.get(), path_))
      return {};
    errno = EEXIST;
    return file_error("create", path_);
  }

  void write_through() override {
    direct_ = DirectOutput::begin(descriptor_.get());
  }

  Result<size_t> write(std::string_view bytes) override {
    if (direct_ != nullptr) {
      if (direct_->write(bytes)) return bytes.size();
      return file_error("write", path_);
    }
    while (true) {
      const ssize_t count =
          ::write(descriptor_.get(), bytes.data(), bytes.size());
      if (count > 0) return size_t(count);
      if (count == 0) errno = EIO;
      if (errno != EINTR) return file_error("write", path_);
    }
  }

  Status sync() override {
    if (const auto direct = std::move(direct_);
        direct != nullptr && !direct->finish())
      return file_error("write", path_);
    while (::fsync(descriptor_.get()) != 0)
      if (errno != EINTR) return file_error("write to the disk", path_);
    return {};
  }

 private:
  Descriptor descriptor_;
  const std::string path_;
  std::unique_ptr<DirectOutput> direct_;  // null: by the cache of files
};

class LocalFiles final : public FileSystem {
 public:
  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    // Non-blocking: the other end of a pipe may never be opened.
    Descriptor descriptor(
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (descriptor.get() < 0 || ::fstat(descriptor.get(), &info) != 0)
      return file_error("open", path);
    if (!S_ISREG(info.st_mode))
      return invalid_argument("[checkpoint] \"{}\" is not a regular file",
                              path);
    return std::unique_ptr<ReadableFile>(std::make_unique<LocalReadableFile>(
        std::move(descriptor), path, uint64_t(info.st_size)));
  }

  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override {
    // Allocates before the file exists, or an error would leave it behind.
    auto file = std::make_unique<LocalWritableFile>(path);
    TAGFLOW_RETURN_IF_ERROR(file->create());
    return std::unique_ptr<WritableFile>(std::move(file));
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return file_error("rename a file to", to);
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return {};
    return file_error("remove", path);
  }

  bool exists(const std::string& path) override {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ||
           code_of_errno(errno) != Code::kNotFound;
  }

  Status make_folder(const std::string& path) override {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    std::error_code unknown;
    if (!code || std::filesystem::is_directory(path, unknown)) return {};
    errno = code.value();
    return file_error("make the folder", path);
  }

  Status sync_folder(const std::string& path) override {
    const Descriptor descriptor(
        ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (descriptor.get() < 0) return file_error("open the folder", path);
    while (::fsync(descriptor.get()) != 0) {
      // Some file systems cannot sync a folder, and need not.
      if (errno == EINVAL || errno == ENOTSUP) return {};
      if (errno != EINTR) return file_error("write to the disk", path);
    }
    return {};
  }
};

}  // namespace

Result<std::vector<std::string>> FileSystem::list(const std::string& folder) {
  return names_in(folder);
}

bool FileSystem::is_folder(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_directory(path, unknown);
}

bool FileSystem::is_same_folder(const std::string& a, const std::string& b) {
  std::error_code unknown;
  return std::filesystem::equivalent(a, b, unknown);
}

int64_t FileSystem::written_at(const std::string& path) {
  std::error_code unknown;
  const auto time = std::filesystem::last_write_time(path, unknown);
  if (unknown) return INT64_MIN;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             time.time_since_epoch())
      .count();
}

Result<std::unique_ptr<FolderLock>> FileSystem::lock_folder(
    const std::string& folder) {
  return FolderLock::take(folder);
}

double FileSystem::now() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

FileSystem& local_files() {
  static LocalFiles files;
  return files;
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path parent =
      std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

// std::filesystem's iterator would end the process when out of memory.
Result<std::vector<std::string>> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()),
                                                   ::closedir);
  if (opened == nullptr) return file_error("open the folder", folder);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* const entry = ::readdir(opened.get());
    if (entry == nullptr && errno != 0)
      return file_error("read the folder", folder);
    if (entry == nullptr) return names;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

Status read_exactly(const ReadableFile& file, uint64_t offset,
                    std::span<char> bytes, std::string_view what) {
  TAGFLOW_ASSIGN(const size_t count, file.read(offset, bytes));
  if (count == bytes.size()) return {};
  return error(Code::kDataLoss,
               "[checkpoint] \"{}\" ends after {} bytes, before the {} bytes "
               "at {}",
               what, offset + count, bytes.size(), offset);
}

void prepare_memory(std::span<char> bytes) {
  constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const uintptr_t last = (begin + bytes.size()) / kLargePage * kLargePage;
  // This is only advice: if it fails, the memory is unchanged.
  if (first < last)
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

Result<std::string> read_whole(FileSystem& files, const std::string& path,
                               uint64_t limit) {
  TAGFLOW_ASSIGN(const std::unique_ptr<ReadableFile> file, files.open(path));
  if (file->size() > limit)
    return error(Code::kResourceExhausted,
                 "[checkpoint] \"{}\" has {} bytes; the limit is {}", path,
                 file->size(), limit);
  std::string bytes(size_t(file->size()), '\0');
  TAGFLOW_RETURN_IF_ERROR(read_exactly(*file, 0, bytes, path));
  return bytes;
}

}  // namespace tagflow::checkpoint
