// Which paths are not for reading to the end.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace tagflow::devices {

// Whether the path leads to something that is no regular file: a folder, a
// device, or a pipe, whose reader waits for a writer that may never come. False
// where there is nothing: who opens it says why. Thread-safe.
inline bool is_irregular_file(const std::string& path) {
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  return std::filesystem::exists(status) &&
         !std::filesystem::is_regular_file(status);
}

}  // namespace tagflow::devices
