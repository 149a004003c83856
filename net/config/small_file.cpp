#include "net/config/small_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "net/link/socket.h"

namespace tagflow::net {

Result<std::string> read_small_file(const std::filesystem::path& path,
                                    size_t most, Readers readers) {
  const auto wrong = [&path](Code code, std::string_view what) {
    return error(code, "\"{}\": {}", path.string(), what);
  };
  const auto failed = [&wrong] {
    const bool is_missing = errno == ENOENT || errno == ENOTDIR;
    return wrong(is_missing ? Code::kNotFound : Code::kPermissionDenied,
                 std::strerror(errno));
  };
  // Without waiting for the writer of a pipe.
  const Socket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor() < 0) return failed();
  struct stat info {};
  if (::fstat(file.descriptor(), &info) != 0) return failed();
  if (!S_ISREG(info.st_mode))
    return wrong(Code::kInvalidArgument, "it is not a regular file");
  if (readers == Readers::kOwner && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return wrong(Code::kPermissionDenied,
                 fmt::format("others than its owner may use it, since its mode "
                             "is {:04o}; chmod 600 changes that",
                             info.st_mode & 07777));
  std::string bytes(most + 1, '\0');
  size_t count = 0;
  while (count < bytes.size()) {
    const ssize_t some =
        ::read(file.descriptor(), bytes.data() + count, bytes.size() - count);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) return failed();
    if (some == 0) break;
    count += size_t(some);
  }
  if (count > most)
    return wrong(Code::kResourceExhausted,
                 fmt::format("it has more than {} bytes", most));
  bytes.resize(count);
  return bytes;
}

}  // namespace tagflow::net
