// ReadFile, WriteFile, MatchingFiles.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "devices/files/host_access.h"
#include "devices/files/matching_files.h"
#include "devices/kernel_registry.h"
#include "devices/string_writer.h"
#include "graph/write_error.h"

namespace tagflow::devices {

namespace {

// Above the limit for constant folding: a file is read when the step runs.
constexpr double kWholeFileNanoseconds = 2 * Kernel::kMostFoldedNanoseconds;

Status file_error(const KernelContext& context, const std::string& path,
                  int number) {
  const Code code = number == ENOENT ? Code::kNotFound
                    : number == EACCES || number == EPERM || number == EROFS
                        ? Code::kPermissionDenied
                    : number == EISDIR || number == ENOTDIR
                        ? Code::kFailedPrecondition
                    : number == EINVAL || number == ENAMETOOLONG
                        ? Code::kInvalidArgument
                        : code_of_write(number, Code::kUnknown);
  return error(code, "[{}] \"{}\": {}", context.node().op(), path,
               std::strerror(number));
}

// A pipe or a device may block, or swallow what is written.
Status check_regular(const KernelContext& context, const std::string& path,
                     const struct stat& facts) {
  if (S_ISDIR(facts.st_mode)) return file_error(context, path, EISDIR);
  if (S_ISREG(facts.st_mode)) return {};
  return context.fail("\"{}\" is not a regular file", path);
}

// A scalar input that names a file.
Result<std::string> path_input(const KernelContext& context, int input) {
  const Tensor& tensor = context.input(input);
  if (!tensor.is_scalar())
    return context.fail("filename must be a scalar, got {}", tensor.describe());
  return tensor.scalar_value<std::string>();
}

// An open file, closed at its end.
class File {
 public:
  File(const std::string& path, int flags)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

class ReadFileKernel : public Kernel {
 public:
  explicit ReadFileKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const std::string name, path_input(context, 0));
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_ASSIGN(const std::string path, host->path_to_read(name));
    // Non-blocking: the other end of a pipe may never be opened.
    const File file(path, O_RDONLY | O_NONBLOCK);
    struct stat facts {};
    if (!file.is_open() || fstat(file.descriptor(), &facts) != 0)
      return file_error(context, path, errno);
    TAGFLOW_RETURN_IF_ERROR(check_regular(context, path, facts));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, Shape{}));
    std::string& contents = *output->mutable_data<std::string>();
    const StringWriter writer(*output);
    // The last read, of the byte behind the end, finds the end. A file may grow
    // meanwhile, and the size of some is unknown before; all are read to their
    // end.
    size_t filled = 0, room = size_t(facts.st_size) + 1;
    for (;;) {
      if (context.cancelled())
        return error(Code::kCancelled, "[ReadFile] the step is over");
      if (filled == contents.size()) {
        writer.reserve(contents, room);
        contents.resize(room);
        room += std::max(kChunk, room / 2);
      }
      const ssize_t count =
          read(file.descriptor(), contents.data() + filled,
               std::min(contents.size() - filled, kMostAtOnce));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_error(context, path, errno);
      if (count == 0) break;
      filled += size_t(count);
    }
    contents.resize(filled);
    return {};
  }

  double cost(const KernelContext&) const override {
    return kWholeFileNanoseconds;
  }

 private:
  static constexpr size_t kChunk = 1 << 12;
  static constexpr size_t kMostAtOnce = 1 << 26;
};

class WriteFileKernel : public Kernel {
 public:
  explicit WriteFileKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const std::string name, path_input(context, 0));
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_ASSIGN(const std::string path, host->path_to_write(name));
    const Tensor& contents = context.input(1);
    if (!contents.is_scalar())
      return context.fail("contents must be a scalar, got {}",
                          contents.describe());
    // Before it is opened, which a pipe's reader or a device would notice.
    struct stat facts {};
    if (stat(path.c_str(), &facts) == 0)
      TAGFLOW_RETURN_IF_ERROR(check_regular(context, path, facts));
    const Commit commit = context.commit();
    if (!commit) return error(Code::kCancelled, "[WriteFile] the step is over");
    std::error_code failure;
    const auto folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, failure);
    // Write errors can appear on closing.
    const File file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK);
    if (!file.is_open()) return file_error(context, path, errno);
    std::string_view rest = contents.scalar_value<std::string>();
    while (!rest.empty()) {
      const ssize_t count = write(file.descriptor(), rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return file_error(context, path, errno);
      rest.remove_prefix(size_t(count));
    }
    return {};
  }

  double cost(const KernelContext&) const override {
    return kWholeFileNanoseconds;
  }
};

class MatchingFilesKernel : public Kernel {
 public:
  explicit MatchingFilesKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& patterns = context.input(0);
    if (patterns.rank() > 1)
      return context.fail("pattern must be a scalar or a vector, got {}",
                          patterns.describe());
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    std::vector<std::string> found;
    for (const std::string& pattern : patterns.flat<std::string>()) {
      auto matches =
          matching_files(*host, pattern, [&] { return context.cancelled(); });
      if (context.cancelled())
        return error(Code::kCancelled, "[MatchingFiles] the step is over");
      if (!matches.ok())
        return std::move(matches).status().with_prefix("[MatchingFiles] ");
      std::ranges::move(*matches, std::back_inserter(found));
    }
    std::ranges::sort(found);
    TAGFLOW_ASSIGN(Tensor * output,
                   context.allocate_output(0, Shape{int64_t(found.size())}));
    std::ranges::move(found, output->mutable_data<std::string>());
    return {};
  }

  double cost(const KernelContext&) const override {
    return kWholeFileNanoseconds;
  }
};

}  // namespace

void register_whole_file_kernels(KernelRegistry& registry) {
  registry.add<ReadFileKernel>("ReadFile");
  registry.add<WriteFileKernel>("WriteFile");
  registry.add<MatchingFilesKernel>("MatchingFiles");
}

}  // namespace tagflow::devices
