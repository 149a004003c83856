#include "graph/beneath.h"

#include <algorithm>
#include <deque>
#include <system_error>

namespace tagflow {
namespace {

namespace fs = std::filesystem;

// As the system's own limit.
constexpr int kMostLinks = 40;

Status cannot_follow(const fs::path& path, const std::error_code& code) {
  const bool is_denied = code == std::errc::permission_denied;
  const bool is_long = code == std::errc::filename_too_long;
  return error(is_denied ? Code::kPermissionDenied
               : is_long ? Code::kInvalidArgument
                         : Code::kNotFound,
               "[path] cannot follow \"{}\": {}", path.string(),
               code.message());
}

// `path`, and where its links lead to.
struct Followed {
  fs::path path;
  fs::path link;  // the last one on the way; empty: there was none
  fs::path target;
};

// REQUIRES: `path` is absolute.
Result<Followed> follow(const fs::path& path) {
  Followed followed{.path = path.root_path()};
  const fs::path names = path.relative_path();
  std::deque<fs::path> left(names.begin(), names.end());
  for (int links = 0; !left.empty();) {
    const fs::path name = std::move(left.front());
    left.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      followed.path = followed.path.parent_path();
      continue;
    }
    fs::path next = followed.path / name;
    std::error_code code;
    const fs::file_type type = fs::symlink_status(next, code).type();
    if (type == fs::file_type::none) return cannot_follow(next, code);
    if (type != fs::file_type::symlink) {
      followed.path = std::move(next);
      continue;
    }
    if (++links > kMostLinks)
      return cannot_follow(
          path, std::make_error_code(std::errc::too_many_symbolic_link_levels));
    const fs::path target = fs::read_symlink(next, code);
    if (code) return cannot_follow(next, code);
    if (target.is_absolute()) followed.path = target.root_path();
    const fs::path more = target.relative_path();
    left.insert(left.begin(), more.begin(), more.end());
    followed.link = std::move(next);
    followed.target = target;
  }
  return followed;
}

}  // namespace

Result<fs::path> resolve_beneath(const fs::path& root, const fs::path& path) {
  if (path.native().find('\0') != path.native().npos)
    return invalid_argument("[path] {:?} has a null character", path.string());
  std::error_code code;
  const fs::path whole = fs::canonical(root, code);
  if (code) return cannot_follow(root, code);
  TAGFLOW_ASSIGN(Followed followed, follow(whole / path));
  const bool is_beneath =
      std::ranges::mismatch(whole, followed.path).in1 == whole.end();
  if (is_beneath) return std::move(followed.path);
  if (followed.link.empty())
    return error(Code::kPermissionDenied,
                 "[path] \"{}\" is outside of the folder \"{}\"", path.string(),
                 root.string());
  return error(Code::kPermissionDenied,
               "[path] the link \"{}\" leads to \"{}\", which is outside of "
               "the folder \"{}\"",
               followed.link.string(), followed.target.string(), root.string());
}

}  // namespace tagflow
