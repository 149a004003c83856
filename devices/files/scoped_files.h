// ScopedFiles: the operating system's files, as far as a policy allows.
#pragma once

#include "devices/files/files.h"
#include "graph/op_policy.h"

namespace tagflow::checkpoint {

// Each call resolves its paths first: those of open() by `reads`, all others by
// `writes`. Errors are those of FileScope::resolve() and of files.
class ScopedFiles : public FileSystem {
 public:
  ScopedFiles(graph::FileScope reads, graph::FileScope writes)
      : reads_(std::move(reads)), writes_(std::move(writes)) {}

  Result<std::unique_ptr<ReadableFile>> open(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  bool exists(const std::string& path) override;
  Status make_folder(const std::string& path) override;
  Status sync_folder(const std::string& path) override;

 private:
  const graph::FileScope reads_, writes_;
};

}  // namespace tagflow::checkpoint
