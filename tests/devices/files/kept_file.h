// A file system in which some files cannot be removed.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "devices/files/files.h"

namespace tagflow::checkpoint {

// Passes everything on to another one, apart from the removal of paths that end
// in `suffix`, and, on request, what follows a renaming to such a path.
class KeptFile final : public FileSystem {
 public:
  KeptFile(FileSystem& files, std::string suffix)
      : files_(files), suffix_(std::move(suffix)) {}

  // Syncs of folders fail once a path of that end has its name.
  bool fails_after_rename = false;

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    return files_.open(path);
  }
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override {
    return files_.create(path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    TAGFLOW_RETURN_IF_ERROR(files_.rename(from, to));
    is_renamed_ = is_renamed_ || to.ends_with(suffix_);
    return {};
  }
  Status remove(const std::string& path) override {
    if (!path.ends_with(suffix_)) return files_.remove(path);
    return error(Code::kPermissionDenied,
                 "[checkpoint] \"{}\" cannot be removed", path);
  }
  bool exists(const std::string& path) override { return files_.exists(path); }
  Status make_folder(const std::string& path) override {
    return files_.make_folder(path);
  }
  Status sync_folder(const std::string& path) override {
    if (fails_after_rename && is_renamed_)
      return error(Code::kResourceExhausted,
                   "[checkpoint] \"{}\" cannot be synced", path);
    return files_.sync_folder(path);
  }

 private:
  FileSystem& files_;
  const std::string suffix_;
  bool is_renamed_ = false;
};

}  // namespace tagflow::checkpoint
