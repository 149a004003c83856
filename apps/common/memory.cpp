#include "apps/common/memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace tagflow::apps {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// "max" is no number.
std::optional<int64_t> number_in(const std::string& path) {
  int64_t number = 0;
  std::ifstream file(path);
  if (file >> number && number >= 0) return number;
  return std::nullopt;
}

// "NAME:  NUMBER kB" in /proc/meminfo.
std::optional<int64_t> free_of_system(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    int64_t number = 0;
    if (word != "MemAvailable:") continue;
    if (file >> number && number >= 0 && number <= kUnlimited / 1024)
      return number * 1024;
    break;
  }
  return std::nullopt;
}

}  // namespace

int64_t available_memory_below(const std::string& root) {
  int64_t bytes = free_of_system(root + "/proc/meminfo").value_or(kUnlimited);
  const std::string group = root + "/sys/fs/cgroup/memory.";
  const auto most = number_in(group + "max");
  const auto used = number_in(group + "current");
  if (most && used)
    bytes = std::min(bytes, std::max<int64_t>(0, *most - *used));
  return bytes;
}

int64_t available_memory() { return available_memory_below(""); }

}  // namespace tagflow::apps
