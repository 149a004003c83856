// A folder for temporary files.
#pragma once

#include <filesystem>
#include <utility>

#include "graph/status.h"

namespace tagflow::io {

// A new folder, which only its owner can use. It is removed with what is in it.
// Thread-compatible.
class PrivateFolder {
 public:
  // Of its name.
  static constexpr char kPrefix[] = "tagflow-";

  // In the system's folder for temporary files. PermissionDenied naming that if
  // it cannot be made there.
  static Result<PrivateFolder> make();

  PrivateFolder(PrivateFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit PrivateFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: it was moved from
};

}  // namespace tagflow::io
