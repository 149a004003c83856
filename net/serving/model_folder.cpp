#include "net/serving/model_folder.h"

#include <fmt/format.h>

#include <charconv>
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

std::string stamp_of(const fs::path& folder) {
  std::string stamp;
  for (const fs::path& file : {folder / kModelFiles[0], folder / kModelFiles[1],
                               folder / "variables" / "variables.index"}) {
    std::error_code code;
    const auto size = fs::file_size(file, code);
    if (code) continue;
    const auto time = fs::last_write_time(file, code);
    if (code) continue;
    stamp += fmt::format("{} {} {};", file.filename().string(), size,
                         time.time_since_epoch().count());
  }
  return stamp;
}

}  // namespace

std::map<int64_t, FoundVersion> find_versions(const fs::path& base_path) {
  std::map<int64_t, FoundVersion> found;
  if (is_saved_model(base_path)) {
    found[1] = {base_path.string(), stamp_of(base_path)};
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
    if (is_saved_model(it->path()))
      found[version] = {it->path().string(), stamp_of(it->path())};
  }
  return found;
}

}  // namespace tagflow::net::serving
