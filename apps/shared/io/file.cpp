#include "apps/shared/io/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <ios>
#include <system_error>

#include "devices/files/files.h"
#include "graph/temporary_file.h"
#include "graph/write_error.h"

namespace tagflow::io {

namespace fs = std::filesystem;

Result<std::string> read_file(const fs::path& path, std::size_t limit,
                              Pipes pipes) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (status.type() == fs::file_type::not_found) {
    return error(Code::kNotFound, "[file] there is no file \"{}\"",
                 path.string());
  }
  if (!fs::exists(status)) {
    return error(Code::kPermissionDenied, "[file] cannot open \"{}\": {}",
                 path.string(), code.message());
  }
  if (fs::is_directory(status)) {
    return invalid_argument("[file] \"{}\" is a folder", path.string());
  }
  // A device may have no end; a pipe has one.
  if (fs::is_character_file(status) || fs::is_block_file(status)) {
    return invalid_argument("[file] \"{}\" is a device", path.string());
  }
  if (!fs::is_regular_file(status) && pipes == Pipes::kRefused) {
    return invalid_argument("[file] \"{}\" is not a regular file",
                            path.string());
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return error(Code::kPermissionDenied, "[file] cannot open \"{}\": {}",
                 path.string(), std::strerror(errno));
  }
  const auto too_large = [&] {
    return error(Code::kResourceExhausted,
                 "[file] \"{}\" is larger than {} bytes", path.string(), limit);
  };
  // A pipe has no size to ask for. Elsewhere there is room for all bytes, and
  // for one more, whose reading finds the end: a string that grew would be
  // twice as large for a while.
  std::string bytes;
  if (fs::is_regular_file(status)) {
    const std::uintmax_t size = fs::file_size(path, code);
    if (!code && size > limit) return too_large();
    if (!code) {
      try {
        bytes.reserve(std::size_t(size) + 1);
      } catch (const std::exception&) {
        return error(Code::kResourceExhausted,
                     "[file] there is no memory for the {} bytes of \"{}\"",
                     size, path.string());
      }
    }
  }
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  while (file) {
    const std::size_t before = bytes.size();
    if (before > limit) return too_large();
    const std::size_t room = bytes.capacity() - before;
    const std::size_t piece = room > 0 ? std::min(room, kPiece) : kPiece;
    bytes.resize(before + piece);
    file.read(bytes.data() + before, std::streamsize(piece));
    bytes.resize(before + std::size_t(file.gcount()));
  }
  if (file.bad()) {
    return error(Code::kDataLoss, "[file] reading \"{}\" failed: {}",
                 path.string(), std::strerror(errno));
  }
  if (bytes.size() > limit) return too_large();
  return bytes;
}

namespace {

// The status for errno.
Status cannot_open(const fs::path& path) {
  const int number = errno;
  return error(
      number == ENOENT ? Code::kNotFound
                       : code_of_write(number, Code::kPermissionDenied),
      "[file] cannot write \"{}\": {}", path.string(), std::strerror(number));
}

// Where a link without a target leads: there the file would be made.
fs::path follow_links(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code code;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, code); ++i)
    path = fs::path(checkpoint::folder_of(path)) / fs::read_symlink(path, code);
  return path;
}

}  // namespace

Status check_writable(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  const bool is_new = status.type() == fs::file_type::not_found;
  errno = 0;
  if (!is_new && !fs::exists(status)) {
    errno = code.value();
  } else if (fs::is_directory(status)) {
    errno = EISDIR;
  } else if (!is_new) {
    if (access(path.c_str(), W_OK) == 0) return {};
  } else {
    const fs::path folder = checkpoint::folder_of(follow_links(path));
    const bool is_folder = fs::is_directory(folder, code);
    if (is_folder && access(folder.c_str(), W_OK | X_OK) == 0) return {};
    if (!is_folder) errno = fs::exists(folder, code) ? ENOTDIR : ENOENT;
  }
  return cannot_open(path);
}

namespace {

// Writes in place. After an error, removes the file, since half a file is worse
// than none, unless it is a device or pipe.
Status write_to(const fs::path& path, std::string_view bytes) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) {
    return cannot_open(path);
  }
  file.write(bytes.data(), std::streamsize(bytes.size()));
  file.close();
  if (!file) {
    const int why = errno;
    std::error_code code;
    if (fs::is_regular_file(path, code)) fs::remove(path, code);
    return error(code_of_write(why, Code::kDataLoss),
                 "[file] writing \"{}\" failed: {}", path.string(),
                 std::strerror(why));
  }
  return {};
}

}  // namespace

Status write_file(const fs::path& path, std::string_view bytes) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  const bool is_new =
      status.type() == fs::file_type::not_found && !fs::is_symlink(path, code);
  if (!is_new && !fs::is_regular_file(status)) return write_to(path, bytes);
  fs::path target = path;
  if (!is_new) {
    // A link stays a link. A file with other names or open descriptors, such as
    // stdout's, is written in place.
    target = fs::canonical(path, code);
    if (code || fs::hard_link_count(target, code) != 1 ||
        path.native().starts_with("/dev/") ||
        path.native().starts_with("/proc/"))
      return write_to(path, bytes);
    TAGFLOW_RETURN_IF_ERROR(check_writable(path));
  }
  // What replaces a file is not readable by others until it has its rights.
  TemporaryFile temporary(target.native(), TemporaryFile::Kind::kFile,
                          is_new ? 0666 : 0600);
  // As in a folder without write permission.
  if (temporary.error() != 0) return write_to(path, bytes);
  Status written = write_to(temporary.path(), bytes);
  if (!written.ok())
    return error(written.code(), "[file] cannot {} \"{}\": {}",
                 is_new ? "make" : "replace", path.string(), written.message());
  code.clear();
  if (!is_new) fs::permissions(temporary.path(), status.permissions(), code);
  temporary.forget();
  if (!code) fs::rename(temporary.path(), target, code);
  if (!code) return {};
  // A mounted file, or another user's in /tmp, can only be written in place.
  std::error_code ignored;
  fs::remove(temporary.path(), ignored);
  return write_to(path, bytes);
}

Status make_folder(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) {
    return error(code_of_write(code.value(), Code::kPermissionDenied),
                 "[file] cannot make folder \"{}\": "
                 "{}",
                 path.string(), code.message());
  }
  return {};
}

}  // namespace tagflow::io
