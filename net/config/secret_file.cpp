#include "net/config/secret_file.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "graph/write_error.h"
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
  // One that is there may have another mode, or be a link.
  ::unlink(path.c_str());
  const Socket file(::open(path.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                           S_IRUSR | S_IWUSR));
  if (file.descriptor() < 0) return secret_error(path, errno);
  Status drawn = draw_secret(file, path);
  if (!drawn.ok()) ::unlink(path.c_str());
  return drawn;
}

Status draw_secret(const Socket& file, const std::filesystem::path& path) {
  std::array<uint8_t, 32> bytes{};
  TAGFLOW_RETURN_IF_ERROR(fill_randomly(bytes));
  const std::string text = fmt::format("{:02x}\n", fmt::join(bytes, ""));
  if (::ftruncate(file.descriptor(), 0) != 0) return secret_error(path, errno);
  const ssize_t count = ::write(file.descriptor(), text.data(), text.size());
  if (count == ssize_t(text.size())) return {};
  // If a part of so few bytes is written, there is no room for the rest.
  return secret_error(path, count < 0 ? errno : ENOSPC);
}

Status secret_error(const std::filesystem::path& path, int number) {
  const bool is_missing = number == ENOENT || number == ENOTDIR;
  return error(is_missing ? Code::kNotFound
                          : code_of_write(number, Code::kPermissionDenied),
               "[secret] cannot write \"{}\": {}", path.string(),
               std::strerror(number));
}

}  // namespace tagflow::net
