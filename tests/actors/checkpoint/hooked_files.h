// The system's files, with hooks that tests set.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "devices/files/files.h"

namespace tagflow::checkpoint {

// Asks before each operation that changes a file or a folder: an error is that
// of the operation, which is not done.
class HookedFiles final : public FileSystem {
 public:
  using Hook = std::function<Status()>;
  explicit HookedFiles(Hook hook) : hook_(std::move(hook)) {}

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    return local_files().open(path == replaced_ ? instead_ : path);
  }
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override {
    TAGFLOW_RETURN_IF_ERROR(hook_());
    TAGFLOW_ASSIGN(auto file, local_files().create(path));
    return std::unique_ptr<WritableFile>(
        std::make_unique<HookedFile>(hook_, std::move(file)));
  }
  Status rename(const std::string& from, const std::string& to) override {
    TAGFLOW_RETURN_IF_ERROR(hook_());
    return local_files().rename(from, to);
  }
  Status remove(const std::string& path) override {
    TAGFLOW_RETURN_IF_ERROR(hook_());
    return local_files().remove(path);
  }
  bool exists(const std::string& path) override {
    return is_blind_ || local_files().exists(path);
  }
  // As in a folder that nobody may look into any more, all may exist from now
  // on.
  void turn_blind() { is_blind_ = true; }
  // From now on open() of `path` opens `other` in its place, so that this file
  // system has another content there than the local one.
  void read_instead(std::string path, std::string other) {
    replaced_ = std::move(path);
    instead_ = std::move(other);
  }
  Status make_folder(const std::string& path) override {
    return local_files().make_folder(path);
  }
  Status sync_folder(const std::string& path) override {
    TAGFLOW_RETURN_IF_ERROR(hook_());
    return local_files().sync_folder(path);
  }

 private:
  class HookedFile final : public WritableFile {
   public:
    HookedFile(Hook hook, std::unique_ptr<WritableFile> file)
        : hook_(std::move(hook)), file_(std::move(file)) {}
    Result<size_t> write(std::string_view bytes) override {
      TAGFLOW_RETURN_IF_ERROR(hook_());
      return file_->write(bytes);
    }
    Status sync() override {
      TAGFLOW_RETURN_IF_ERROR(hook_());
      return file_->sync();
    }

   private:
    const Hook hook_;
    const std::unique_ptr<WritableFile> file_;
  };

  const Hook hook_;
  std::atomic<bool> is_blind_{false};
  std::string replaced_, instead_;
};

}  // namespace tagflow::checkpoint
