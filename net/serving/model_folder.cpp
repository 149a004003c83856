#include "net/serving/model_folder.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <system_error>

namespace tagflow::net::serving {

namespace fs = std::filesystem;

namespace {

constexpr const char* kModelFiles[] = {"saved_model.pb", "saved_model.pbtxt"};

bool is_saved_model(const fs::path& folder) {
  std::error_code code;
  for (const char* file : kModelFiles)
    if (fs::is_regular_file(folder / file, code)) return true;
  return false;
}

void add_stamp(const fs::path& file, std::string& stamp) {
  std::error_code code;
  const auto size = fs::file_size(file, code);
  if (code) return;
  const auto time = fs::last_write_time(file, code);
  if (code) return;
  stamp += fmt::format("{} {} {};", file.filename().string(), size,
                       time.time_since_epoch().count());
}

}  // namespace

std::string stamp_of(const fs::path& folder) {
  std::string stamp;
  for (const char* file : kModelFiles) add_stamp(folder / file, stamp);
  for (const char* inner : {"variables", "assets"}) {
    std::error_code code;
    std::set<fs::path> files;
    for (fs::directory_iterator it(folder / inner, code), end;
         !code && it != end; it.increment(code))
      files.insert(it->path());
    for (const fs::path& file : files) add_stamp(file, stamp);
  }
  return stamp;
}

std::map<int64_t, std::string> find_versions(const fs::path& base_path) {
  std::map<int64_t, std::string> found;
  if (is_saved_model(base_path)) {
    found[1] = base_path.string();
    return found;
  }
  std::error_code code;
  for (fs::directory_iterator it(base_path, code), end; !code && it != end;
       it.increment(code)) {
    const std::string name = it->path().filename().string();
    int64_t version = 0;
    const char* const last = name.data() + name.size();
    const auto [stop, parsed] = std::from_chars(name.data(), last, version);
    if (parsed != std::errc() || stop != last || version < 0) continue;
    if (is_saved_model(it->path())) found[version] = it->path().string();
  }
  return found;
}

}  // namespace tagflow::net::serving
