#include "net/config/secret_file.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "net/config/small_file.h"
#include "net/link/crypto.h"
#include "net/link/socket.h"

namespace tagflow::net {

Result<std::string> read_secret(const std::filesystem::path& path) {
  constexpr size_t kLargest = 4096;
  auto secret = read_small_file(path, kLargest, Readers::kOwner);
  if (!secret.ok()) return std::move(secret).status().with_prefix("[secret] ");
  if (secret->ends_with('\n')) secret->pop_back();
  if (secret->ends_with('\r')) secret->pop_back();
  if (secret->empty())
    return invalid_argument("[secret] \"{}\" is empty", path.string());
  return secret;
}

Status write_new_secret(const std::filesystem::path& path) {
  std::array<uint8_t, 32> bytes{};
  TAGFLOW_RETURN_IF_ERROR(fill_randomly(bytes));
  const std::string text = fmt::format("{:02x}\n", fmt::join(bytes, ""));
  // One that is there may have another mode, or be a link.
  ::unlink(path.c_str());
  const Socket file(::open(path.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                           S_IRUSR | S_IWUSR));
  // So few bytes are written at once, or not at all.
  const bool is_written =
      file.descriptor() >= 0 && ::write(file.descriptor(), text.data(),
                                        text.size()) == ssize_t(text.size());
  if (is_written) return {};
  return error(errno == ENOENT || errno == ENOTDIR ? Code::kNotFound
                                                   : Code::kPermissionDenied,
               "[secret] cannot write \"{}\": {}", path.string(),
               std::strerror(errno));
}

}  // namespace tagflow::net
