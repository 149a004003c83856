// Folders of files that tests write.
#pragma once

#include <filesystem>
#include <string>

#include "tests/temp_path.h"

namespace tagflow::testing {

// Makes an empty folder, and removes it with what is in it.
class TempFolder {
 public:
  explicit TempFolder(const std::string& name) : path_(temp_path(name)) {
    std::filesystem::create_directory(path_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }

 private:
  const std::filesystem::path path_;
};

}  // namespace tagflow::testing
