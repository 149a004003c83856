// Files for a fuzz target: parts of its input.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "devices/files/files.h"

namespace tagflow::checkpoint {

// Of reading alone; what would change a file is an error. The input outlives
// it. Thread-compatible.
class MemoryInput final : public FileSystem {
 public:
  void add(const std::string& path, std::string_view bytes) {
    files_[path] = bytes;
  }

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    const auto it = files_.find(path);
    if (it == files_.end()) return refused(Code::kNotFound);
    return std::unique_ptr<ReadableFile>(std::make_unique<File>(it->second));
  }
  bool exists(const std::string& path) override {
    return files_.contains(path);
  }
  Result<std::unique_ptr<WritableFile>> create(const std::string&) override {
    return refused(Code::kPermissionDenied);
  }
  Status rename(const std::string&, const std::string&) override {
    return refused(Code::kPermissionDenied);
  }
  Status remove(const std::string&) override {
    return refused(Code::kPermissionDenied);
  }
  Status make_folder(const std::string&) override {
    return refused(Code::kPermissionDenied);
  }
  Status sync_folder(const std::string&) override {
    return refused(Code::kPermissionDenied);
  }

 private:
  class File final : public ReadableFile {
   public:
    explicit File(std::string_view bytes) : bytes_(bytes) {}
    uint64_t size() const override { return bytes_.size(); }
    Result<size_t> read(uint64_t offset, std::span<char> to) const override {
      const auto at = size_t(std::min<uint64_t>(offset, bytes_.size()));
      const size_t count = std::min(to.size(), bytes_.size() - at);
      std::copy_n(bytes_.data() + at, count, to.data());
      return count;
    }

   private:
    const std::string_view bytes_;
  };

  static Status refused(Code code) { return error(code, "not there"); }

  std::map<std::string, std::string_view> files_;
};

}  // namespace tagflow::checkpoint
