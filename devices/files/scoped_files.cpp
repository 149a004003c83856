#include "devices/files/scoped_files.h"

namespace tagflow::checkpoint {

Result<std::unique_ptr<ReadableFile>> ScopedFiles::open(
    const std::string& path) {
  TAGFLOW_ASSIGN(const std::string found, reads_.resolve(path));
  return local_files().open(found);
}

Result<std::unique_ptr<WritableFile>> ScopedFiles::create(
    const std::string& path) {
  TAGFLOW_ASSIGN(const std::string found, writes_.resolve_name(path));
  return local_files().create(found);
}

Status ScopedFiles::rename(const std::string& from, const std::string& to) {
  TAGFLOW_ASSIGN(const std::string old_name, writes_.resolve_name(from));
  TAGFLOW_ASSIGN(const std::string new_name, writes_.resolve_name(to));
  return local_files().rename(old_name, new_name);
}

Status ScopedFiles::remove(const std::string& path) {
  TAGFLOW_ASSIGN(const std::string found, writes_.resolve_name(path));
  return local_files().remove(found);
}

bool ScopedFiles::exists(const std::string& path) {
  const Result<std::string> found = writes_.resolve_name(path);
  return !found.ok() || local_files().exists(*found);
}

Status ScopedFiles::make_folder(const std::string& path) {
  TAGFLOW_ASSIGN(const std::string found, writes_.resolve(path));
  return local_files().make_folder(found);
}

Status ScopedFiles::sync_folder(const std::string& path) {
  TAGFLOW_ASSIGN(const std::string found, writes_.resolve(path));
  return local_files().sync_folder(found);
}

}  // namespace tagflow::checkpoint
