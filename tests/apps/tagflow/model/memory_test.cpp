#include "apps/tagflow/model/memory.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

TEST_CASE("the memory that is free is the system's, or that of the group") {
  const std::string root = testing::temp_path("memory").string();
  fs::remove_all(root);
  CHECK(available_memory_below(root) == std::numeric_limits<int64_t>::max());
  fs::create_directories(root + "/proc");
  fs::create_directories(root + "/sys/fs/cgroup");
  std::ofstream(root + "/proc/meminfo")
      << "MemTotal:  900 kB\nMemFree:  9 kB\nMemAvailable:  500 kB\n";
  CHECK(available_memory_below(root) == 500 * 1024);
  std::ofstream(root + "/sys/fs/cgroup/memory.max") << "max\n";
  std::ofstream(root + "/sys/fs/cgroup/memory.current") << "1000\n";
  CHECK(available_memory_below(root) == 500 * 1024);
  std::ofstream(root + "/sys/fs/cgroup/memory.max") << "5000\n";
  CHECK(available_memory_below(root) == 4000);
  // What the system keeps of files makes room for others.
  std::ofstream(root + "/sys/fs/cgroup/memory.stat")
      << "anon 300\nfile 700\ninactive_file 500\nactive_file 100\n";
  CHECK(available_memory_below(root) == 4600);
  fs::remove(root + "/sys/fs/cgroup/memory.stat");
  std::ofstream(root + "/sys/fs/cgroup/memory.max") << "500\n";
  CHECK(available_memory_below(root) == 0);
  std::ofstream(root + "/proc/meminfo") << "MemAvailable: many kB\n";
  CHECK(available_memory_below(root) == 0);
  fs::remove_all(root);
  CHECK(available_memory() > 0);
}

}  // namespace
}  // namespace tagflow::apps
