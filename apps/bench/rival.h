// Helpers that the comparisons with TensorFlow share: TensorFlow in a separate
// process, and the format of figures.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "apps/shared/runs/child_process.h"
#include "graph/status.h"

namespace tagflow::apps {

// A folder that is removed with this object.
class TemporaryFolder {
 public:
  // Returns PermissionDenied if no folder can be made.
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

// TensorFlow in a separate process, in which a script answers lines.
class Rival {
 public:
  // The script gets the manifest's path, and prints "ready VERSION". Returns
  // FailedPrecondition if it does not.
  static Result<Rival> start(const std::string& python,
                             const std::string& script,
                             const std::filesystem::path& manifest);

  const std::string& version() const { return version_; }
  // Its answer for the entry. Returns Aborted if the process has ended.
  Result<std::string> ask(size_t entry);

 private:
  Rival(ChildProcess process, std::string version)
      : process_(std::move(process)), version_(std::move(version)) {}

  ChildProcess process_;
  std::string version_;
};

// The caption of a table: how it was measured, and on which machine. Its lines
// have at most 80 columns, unless a word is longer.
std::string caption(const Rival& rival, int rounds);
// The value with four significant digits, without an exponent.
std::string four_digits(double value);

}  // namespace tagflow::apps
