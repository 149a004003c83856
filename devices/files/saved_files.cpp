#include "devices/files/saved_files.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "devices/files/bundle_index.h"
#include "graph/temporary_file.h"

namespace tagflow::checkpoint {
namespace {

namespace fs = std::filesystem;

// The start of the temporary names of a folder's list.
constexpr std::string_view kList = "checkpoint.";

// The paths of the folder's files whose names match.
Result<std::vector<std::string>> files_in(
    FileSystem& files, const std::string& folder,
    const std::function<bool(std::string_view name)>& is_wanted) {
  std::vector<std::string> paths;
  const auto names = files.list(folder);
  if (names.status().code() == Code::kNotFound) return paths;
  TAGFLOW_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names)
    if (is_wanted(name)) paths.push_back((fs::path(folder) / name).string());
  return paths;
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Status remove_bundle(const std::string& prefix, const WriteOptions& options) {
  FileSystem& files = options.file_system();
  const std::string stem = fs::path(prefix).filename().string();
  const std::string index = index_path(prefix);
  if (files.exists(index)) TAGFLOW_RETURN_IF_ERROR(files.remove(index));
  // "STEM.data-00000-of-00001".
  const std::string start = stem + ".data-";
  const auto is_part = [&](std::string_view name) {
    if (!name.starts_with(start)) return false;
    name.remove_prefix(start.size());
    const size_t of = name.find("-of-");
    return of != name.npos && is_digits(name.substr(0, of)) &&
           is_digits(name.substr(of + 4));
  };
  TAGFLOW_ASSIGN(const auto parts, files_in(files, folder_of(prefix), is_part));
  for (const std::string& path : parts)
    TAGFLOW_RETURN_IF_ERROR(files.remove(path));
  return {};
}

std::vector<std::string> temporary_lists(const std::string& folder,
                                         FileSystem& files) {
  const auto lists = files_in(files, folder, [](std::string_view file) {
    return is_temporary_name(file) && file.starts_with(kList);
  });
  return lists.ok() ? *lists : std::vector<std::string>();
}

void remove_temporary_files(const std::string& folder, const std::string& name,
                            const WriteOptions& options) {
  const auto is_left = [&](std::string_view file) {
    return is_temporary_name(file) &&
           (file.starts_with(name) || file.starts_with(kList));
  };
  // A file that cannot be found or removed does no harm.
  FileSystem& files = options.file_system();
  const auto left = files_in(files, folder, is_left);
  if (!left.ok()) return;
  for (const std::string& path : *left) static_cast<void>(files.remove(path));
}

}  // namespace tagflow::checkpoint
