#include "tests/devices/files/memory_files.h"

#include <algorithm>

namespace tagflow::checkpoint {
namespace {

class MemoryReadableFile final : public ReadableFile {
 public:
  explicit MemoryReadableFile(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<size_t> read(uint64_t offset, std::span<char> to) const override {
    const auto at = size_t(std::min<uint64_t>(offset, bytes_.size()));
    const size_t count = std::min(to.size(), bytes_.size() - at);
    std::copy_n(bytes_.data() + at, count, to.data());
    return count;
  }

 private:
  const std::string bytes_;
};

Status no_such_file(const std::string& path) {
  return error(Code::kNotFound, "[checkpoint] cannot open \"{}\": not there",
               path);
}

}  // namespace

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(MemoryFiles& files,
                     std::shared_ptr<MemoryFiles::Node> node)
      : files_(files), node_(std::move(node)) {}
  Result<size_t> write(std::string_view bytes) override {
    TAGFLOW_RETURN_IF_ERROR(files_.count());
    const size_t count = std::min(bytes.size(), files_.most_per_write);
    node_->bytes += bytes.substr(0, count);
    return count;
  }
  Status sync() override {
    TAGFLOW_RETURN_IF_ERROR(files_.count());
    node_->durable = node_->bytes;
    return {};
  }

 private:
  MemoryFiles& files_;
  const std::shared_ptr<MemoryFiles::Node> node_;
};

Status MemoryFiles::count() {
  const int number = operations++;
  const bool fails =
      failing >= 0 && (is_crash ? number >= failing : number == failing);
  if (!fails) return {};
  return error(Code::kResourceExhausted,
               "[checkpoint] operation {} fails: No space left on device",
               number);
}

std::map<std::string, std::string> MemoryFiles::contents() const {
  std::map<std::string, std::string> all;
  for (const auto& [path, node] : names_) all[path] = node->bytes;
  return all;
}

void MemoryFiles::put(const std::string& path, std::string bytes) {
  names_[path] = std::make_shared<Node>(Node{bytes, bytes});
  durable_names_[path] = names_[path];
}

void MemoryFiles::lose_power() {
  names_ = durable_names_;
  for (auto& [path, node] : names_) node->bytes = node->durable;
}

void MemoryFiles::recover() {
  failing = -1;
  is_crash = false;
  operations = 0;
}

Result<std::unique_ptr<ReadableFile>> MemoryFiles::open(
    const std::string& path) {
  const auto it = names_.find(path);
  if (it == names_.end()) return no_such_file(path);
  return std::unique_ptr<ReadableFile>(
      std::make_unique<MemoryReadableFile>(it->second->bytes));
}

Result<std::unique_ptr<WritableFile>> MemoryFiles::create(
    const std::string& path) {
  TAGFLOW_RETURN_IF_ERROR(count());
  if (names_.contains(path))
    return error(Code::kAlreadyExists, "[checkpoint] \"{}\" is there", path);
  const auto node = std::make_shared<Node>();
  // Before it has a name: without memory there is no file.
  auto file = std::make_unique<MemoryWritableFile>(*this, node);
  names_[path] = node;
  return std::unique_ptr<WritableFile>(std::move(file));
}

Status MemoryFiles::rename(const std::string& from, const std::string& to) {
  TAGFLOW_RETURN_IF_ERROR(count());
  const auto it = names_.find(from);
  if (it == names_.end()) return no_such_file(from);
  const auto node = it->second;
  names_.erase(it);
  names_[to] = node;
  return {};
}

Status MemoryFiles::remove(const std::string& path) {
  TAGFLOW_RETURN_IF_ERROR(count());
  return names_.erase(path) > 0 ? Status() : no_such_file(path);
}

bool MemoryFiles::exists(const std::string& path) {
  return names_.contains(path);
}

Status MemoryFiles::make_folder(const std::string&) { return {}; }

Status MemoryFiles::sync_folder(const std::string& path) {
  TAGFLOW_RETURN_IF_ERROR(count());
  const auto is_in = [&](const auto& name) {
    return folder_of(name.first) == path;
  };
  std::erase_if(durable_names_, is_in);
  for (const auto& name : names_)
    if (is_in(name)) durable_names_.insert(name);
  return {};
}

}  // namespace tagflow::checkpoint
