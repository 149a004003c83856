#include "apps/tagflow/model/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

namespace tagflow::apps {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// "max" is not a number.
std::optional<int64_t> number_in(const std::string& path) {
  int64_t number = 0;
  std::ifstream file(path);
  if (file >> number && number >= 0) return number;
  return std::nullopt;
}

// The number behind the name in a file of pairs, as in "NAME NUMBER".
std::optional<int64_t> number_of(const std::string& path,
                                 std::string_view name) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    int64_t number = 0;
    if (word != name) continue;
    if (file >> number && number >= 0) return number;
    break;
  }
  return std::nullopt;
}

int64_t free_of_system(const std::string& root) {
  const auto kilobytes = number_of(root + "/proc/meminfo", "MemAvailable:");
  return kilobytes && *kilobytes <= kUnlimited / 1024 ? *kilobytes * 1024
                                                      : kUnlimited;
}

// Pages of files count as used, but are freed when memory is needed.
int64_t free_of_group(const std::string& root) {
  const std::string group = root + "/sys/fs/cgroup/memory.";
  const auto most = number_in(group + "max");
  auto used = number_in(group + "current");
  if (!most || !used) return kUnlimited;
  for (const std::string_view pages : {"inactive_file", "active_file"})
    *used -= std::min(*used, number_of(group + "stat", pages).value_or(0));
  return std::max<int64_t>(0, *most - *used);
}

}  // namespace

int64_t available_memory_below(const std::string& root) {
  return std::min(free_of_system(root), free_of_group(root));
}

int64_t available_memory() { return available_memory_below(""); }

}  // namespace tagflow::apps
