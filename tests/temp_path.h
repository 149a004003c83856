// Paths of files that tests write.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

namespace tagflow::testing {

// In the system's folder for such; tests that run at the same time, of another
// build too, get others.
inline std::filesystem::path temp_path(const std::string& name) {
  return std::filesystem::temp_directory_path() /
         ("tagflow_" + std::to_string(getpid()) + "_" + name);
}

}  // namespace tagflow::testing
