// A check for paths that cannot be read to the end.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace tagflow::devices {

// Whether the path leads to something other than a regular file: a folder, a
// device, or a pipe, whose reader waits for a writer that may never come. False
// if the path does not exist: opening it gives the reason. Thread-safe.
inline bool is_irregular_file(const std::string& path) {
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  return std::filesystem::exists(status) &&
         !std::filesystem::is_regular_file(status);
}

}  // namespace tagflow::devices
