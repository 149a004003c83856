#include "devices/files/atomic_file.h"

#include <algorithm>
#include <utility>

#include "devices/files/crc32c.h"
#include "graph/fault.h"
#include "graph/temporary_file.h"

namespace tagflow::checkpoint {
namespace {

// Smaller pieces are copied, and written together.
constexpr size_t kWrittenAsIs = size_t{64} << 10;
constexpr size_t kGathered = 4 * kWrittenAsIs;
// Fits in a core's own cache, so that a checksum and a copy read memory once.
constexpr size_t kCachedPiece = size_t{256} << 10;

}  // namespace

AtomicFile::AtomicFile(std::string target, const WriteOptions& options)
    : target_(std::move(target)), options_(options) {}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(
    std::string target, const WriteOptions& options) {
  FileSystem& files = options.file_system();
  if (options.makes_folders)
    TAGFLOW_RETURN_IF_ERROR(files.make_folder(folder_of(target)));
  // Before the file exists: otherwise nobody would remove it if memory is
  // short.
  std::unique_ptr<AtomicFile> made(new AtomicFile(std::move(target), options));
  Status status;
  const auto is_taken = [&](const std::string& name) {
    made->temporary_ = name;
    auto file = files.create(name);
    made->exists_ = file.ok();
    if (file.ok()) made->file_ = std::move(file).value();
    status = std::move(file).status();
    return status.code() == Code::kAlreadyExists;
  };
  const MakingUnfinishedFile making;
  // In other file systems the names mean something else.
  try_temporary_names(made->target_, is_taken, &files == &local_files());
  TAGFLOW_RETURN_IF_ERROR(status);
  // Not before: it may be another's.
  made->unfinished_.emplace(made->temporary_);
  return made;
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::create_as(
    std::string temporary, std::string target, const WriteOptions& options) {
  FileSystem& files = options.file_system();
  if (options.makes_folders)
    TAGFLOW_RETURN_IF_ERROR(files.make_folder(folder_of(target)));
  std::unique_ptr<AtomicFile> made(new AtomicFile(std::move(target), options));
  made->temporary_ = std::move(temporary);
  const MakingUnfinishedFile making;
  TAGFLOW_ASSIGN(made->file_, files.create(made->temporary_));
  made->exists_ = true;
  made->unfinished_.emplace(made->temporary_);
  return made;
}

AtomicFile::~AtomicFile() {
  // An error is not reported: the leftover file does no harm.
  if (!exists_) return;
  unfinished_.reset();
  static_cast<void>(
      guarded([this] { return options_.file_system().remove(temporary_); }));
}

void AtomicFile::write_through() {
  if (options_.sync) file_->write_through();
}

Status AtomicFile::write_all(std::string_view bytes) {
  TAGFLOW_RETURN_IF_ERROR(failed_);
  while (!bytes.empty()) {
    auto count = file_->write(bytes);
    if (!count.ok()) return failed_ = std::move(count).status();
    bytes.remove_prefix(std::min(*count, bytes.size()));
  }
  return {};
}

Status AtomicFile::flush() {
  TAGFLOW_RETURN_IF_ERROR(write_all(buffer_));
  buffer_.clear();
  return {};
}

Status AtomicFile::append(std::string_view bytes) {
  size_ += bytes.size();
  const bool is_large = bytes.size() >= kWrittenAsIs;
  if (is_large || buffer_.size() + bytes.size() > kGathered)
    TAGFLOW_RETURN_IF_ERROR(flush());
  if (is_large) return write_all(bytes);
  buffer_ += bytes;
  return {};
}

Status AtomicFile::append(std::string_view bytes, uint32_t& crc) {
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kCachedPiece);
    crc = extend_crc32c(crc, piece);
    TAGFLOW_RETURN_IF_ERROR(append(piece));
    bytes.remove_prefix(piece.size());
  }
  return {};
}

Status AtomicFile::finish() {
  TAGFLOW_RETURN_IF_ERROR(flush());
  if (options_.sync) {
    if (Status status = file_->sync(); !status.ok())
      return failed_ = std::move(status);
  }
  return {};
}

Status AtomicFile::publish() {
  TAGFLOW_RETURN_IF_ERROR(failed_);
  // From then on, another may have the temporary name.
  unfinished_.reset();
  TAGFLOW_RETURN_IF_ERROR(options_.file_system().rename(temporary_, target_));
  exists_ = false;
  file_.reset();
  published_ = true;
  return {};
}

void AtomicFile::leave() {
  unfinished_.reset();
  exists_ = false;
  file_.reset();
}

Status write_atomically(const std::string& path, std::string_view bytes,
                        const WriteOptions& options) {
  TAGFLOW_ASSIGN(const std::unique_ptr<AtomicFile> file,
                 AtomicFile::create(path, options));
  TAGFLOW_RETURN_IF_ERROR(file->append(bytes));
  TAGFLOW_RETURN_IF_ERROR(file->finish());
  TAGFLOW_RETURN_IF_ERROR(file->publish());
  return options.sync ? options.file_system().sync_folder(folder_of(path))
                      : Status();
}

}  // namespace tagflow::checkpoint
