#include "devices/files/matching_files.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <memory>

namespace tagflow::devices {

namespace {

constexpr const char* kWild = "*?[\\";

struct Search {
  const HostAccess& host;
  const std::function<bool()>& is_over;
  std::vector<std::string> found;

  // Adds the existing paths for `path`, which exists, followed by `pattern`.
  // Folders that cannot be read count as empty.
  void expand(const std::string& path, std::string_view pattern) {
    if (is_over()) return;
    const size_t end = pattern.find('/');
    const std::string part(pattern.substr(0, end));
    const bool is_last = end == pattern.npos;
    const std::string_view rest = is_last ? "" : pattern.substr(end + 1);
    const auto take = [&](const std::string& name) {
      const std::string next = path + name;
      struct stat facts {};
      if (!is_last) return expand(next + "/", rest);
      const auto file = host.path_to_read(next);
      if (file.ok() && stat(file->c_str(), &facts) == 0) found.push_back(next);
    };
    if (part.find_first_of(kWild) == part.npos) return take(part);
    const auto listed = host.path_to_read(path);
    if (!listed.ok()) return;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(
        opendir(listed->empty() ? "." : listed->c_str()), closedir);
    if (folder == nullptr) return;
    while (const dirent* entry = readdir(folder.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != ".." &&
          fnmatch(part.c_str(), name.c_str(), 0) == 0)
        take(name);
    }
  }
};

}  // namespace

Result<std::vector<std::string>> matching_files(
    const HostAccess& host, const std::string& pattern,
    const std::function<bool()>& is_over) {
  if (pattern.find('\0') != pattern.npos)
    return invalid_argument("{:?}: a pattern contains a zero byte", pattern);
  // No file has such a name.
  if (pattern.empty() || pattern.size() > PATH_MAX)
    return std::vector<std::string>();
  // The part before the first wildcard.
  const size_t plain = std::min(pattern.find_first_of(kWild), pattern.size());
  const size_t folder = pattern.rfind('/', plain) + 1;
  Status status =
      host.path_to_read(plain == pattern.size() ? pattern
                                                : pattern.substr(0, folder))
          .status();
  if (status.code() == Code::kPermissionDenied) return status;
  Search search{host, is_over, {}};
  search.expand("", pattern);
  std::ranges::sort(search.found);
  return std::move(search.found);
}

}  // namespace tagflow::devices
