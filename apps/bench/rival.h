// What the comparisons with TensorFlow share: that in a process of its own, and
// how figures are printed.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "apps/common/child_process.h"
#include "graph/status.h"

namespace tagflow::apps {

// A folder that goes when this does.
class TemporaryFolder {
 public:
  // PermissionDenied where there can be none.
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, std::filesystem::path())) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path)
      : path_(std::move(path)) {}

  std::filesystem::path path_;
};

// TensorFlow in a process of its own, which answers lines by a script.
class Rival {
 public:
  // The script gets the manifest's path, and prints "ready VERSION".
  // FailedPrecondition where it does not.
  static Result<Rival> start(const std::string& python,
                             const std::string& script,
                             const std::filesystem::path& manifest);

  const std::string& version() const { return version_; }
  // What it says of the entry. Unavailable where it has ended.
  Result<std::string> ask(size_t entry);

 private:
  Rival(ChildProcess process, std::string version)
      : process_(std::move(process)), version_(std::move(version)) {}

  ChildProcess process_;
  std::string version_;
};

// What stands above a table: how it was measured, and on which machine. Lines
// of at most 80 columns where words are no longer.
std::string caption(const Rival& rival, int rounds);
// Four digits that count, without an exponent.
std::string four_digits(double value);

}  // namespace tagflow::apps
