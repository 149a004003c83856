#include "tests/net/protocol/sim_disk.h"

#include <algorithm>
#include <cstdint>

#include "tests/net/protocol/sim_fiber.h"

namespace tagflow::net::simulated {

namespace {

Status missing(const std::string& path) {
  return error(Code::kNotFound, "[disk] there is no \"{}\"", path);
}

class ReadFile final : public checkpoint::ReadableFile {
 public:
  explicit ReadFile(Disk::NodePtr node)
      : node_(std::move(node)), size_(node_->bytes.size()) {}
  uint64_t size() const override { return size_; }
  Result<size_t> read(uint64_t offset, std::span<char> bytes) const override {
    const auto at = size_t(std::min<uint64_t>(offset, size_));
    const size_t count = std::min(bytes.size(), size_ - at);
    std::copy_n(node_->bytes.data() + at, count, bytes.data());
    return count;
  }

 private:
  const Disk::NodePtr node_;
  const size_t size_;
};

}  // namespace

// --- Disk ---

Disk::NodePtr Disk::find(const std::string& path) const {
  const auto place = names_.find(path);
  return place == names_.end() ? nullptr : place->second;
}

bool Disk::is_durable(const std::string& path) const {
  const auto place = durable_names_.find(path);
  const NodePtr node = find(path);
  return node != nullptr && place != durable_names_.end() &&
         place->second == node && node->num_synced == node->bytes.size();
}

void Disk::apply(const Renaming& renaming, Names& names) {
  names.erase(renaming.from);
  if (!renaming.to.empty()) names[renaming.to] = renaming.node;
}

void Disk::name(const std::string& from, const std::string& to, NodePtr node) {
  changes_.push_back({from, to, std::move(node)});
  apply(changes_.back(), names_);
}

void Disk::remove(const std::string& path) {
  changes_.push_back({path, "", nullptr});
  apply(changes_.back(), names_);
}

void Disk::sync_folder() {
  changes_.clear();
  durable_names_ = names_;
}

void Disk::lose_power(Random& random) {
  const bool keeps_order = random.percent(70);
  const size_t first = size_t(random.below(changes_.size() + 1));
  for (size_t i = 0; i < changes_.size(); ++i)
    if (keeps_order ? i < first : random.percent(50))
      apply(changes_[i], durable_names_);
  changes_.clear();
  names_ = durable_names_;
  for (const auto& [path, node] : names_) {
    const size_t rest = node->bytes.size() - node->num_synced;
    node->bytes.resize(node->num_synced + size_t(random.below(rest + 1)));
    if (random.percent(30))
      std::fill(node->bytes.begin() + int64_t(node->num_synced),
                node->bytes.end(), '\0');
    node->num_synced = node->bytes.size();
  }
}

void Disk::damage(const std::string& path, Random& random, bool may_change) {
  Node& node = *names_.at(path);
  const auto place = size_t(random.below(node.bytes.size()));
  if (may_change && random.percent(50)) {
    node.bytes[place] = char(node.bytes[place] ^ 0x55);
  } else {
    node.bytes.resize(place);
    node.num_synced = std::min(node.num_synced, place);
  }
  node.is_damaged = true;
}

// --- DiskFiles ---

class DiskFiles::Written final : public checkpoint::WritableFile {
 public:
  Written(DiskFiles& files, std::string path, Disk::NodePtr node)
      : files_(files), path_(std::move(path)), node_(std::move(node)) {}

  Result<size_t> write(std::string_view bytes) override {
    Random& random = files_.world_.random();
    const size_t count = random.percent(40)
                             ? 1 + size_t(random.below(bytes.size()))
                             : bytes.size();
    TAGFLOW_RETURN_IF_ERROR(files_.perform(Change::kWrite, path_, true, [&] {
      node_->bytes += bytes.substr(0, count);
      node_->written = files_.stamp();
    }));
    return count;
  }

  Status sync() override {
    return files_.perform(Change::kSync, path_, true, [&] {
      if (!files_.world_.is_planted(Planted::kFilesUnsynced))
        node_->num_synced = node_->bytes.size();
    });
  }

 private:
  DiskFiles& files_;
  const std::string path_;
  const Disk::NodePtr node_;
};

class DiskFiles::Lock final : public checkpoint::FolderLock {
 public:
  Lock(Disk& disk, uint64_t process) : disk_(disk), process_(process) {
    disk_.locked_by = process_;
  }
  ~Lock() override {
    if (disk_.locked_by == process_) disk_.locked_by = 0;
  }
  Status check_place() const override { return {}; }
  bool is_exclusive() const override { return true; }

 private:
  Disk& disk_;
  const uint64_t process_;
};

Status DiskFiles::perform(Change change, const std::string& path,
                          bool needs_room,
                          const std::function<void()>& effect) {
  Fiber::check();
  Random& random = world_.random();
  const bool is_early = random.percent(50);
  Duration time = random.duration(microseconds(10), microseconds(800));
  if (disk_.slowness > Duration(0))
    time += random.duration(Duration(0), disk_.slowness);
  Status status;
  const auto now = [&] {
    if (disk_.locked_by != process_)
      world_.violation("a process writes to \"" + path +
                       "\", in a folder that it has not locked");
    if (needs_room && disk_.is_full) {
      status = error(Code::kResourceExhausted,
                     "[disk] no room is left for \"{}\"", path);
    } else if (disk_.num_failures > 0 && random.percent(30)) {
      --disk_.num_failures;
      status = error(Code::kUnknown, "[disk] \"{}\" fails", path);
    } else {
      if (disk_.on_change) disk_.on_change(change, path);
      effect();
    }
  };
  if (is_early) now();
  pass_(time);
  if (!is_early) now();
  return status;
}

Result<std::unique_ptr<checkpoint::ReadableFile>> DiskFiles::open(
    const std::string& path) {
  pass_(world_.random().duration(microseconds(5), microseconds(300)));
  const Disk::NodePtr node = disk_.find(path);
  if (node == nullptr) return missing(path);
  return std::unique_ptr<checkpoint::ReadableFile>(
      std::make_unique<ReadFile>(node));
}

Result<std::unique_ptr<checkpoint::WritableFile>> DiskFiles::create(
    const std::string& path) {
  if (exists(path))
    return error(Code::kAlreadyExists, "[disk] there is \"{}\"", path);
  const auto node = std::make_shared<Disk::Node>();
  node->written = stamp();
  TAGFLOW_RETURN_IF_ERROR(perform(Change::kCreate, path, true,
                                  [&] { disk_.name("", path, node); }));
  return std::unique_ptr<checkpoint::WritableFile>(
      std::make_unique<Written>(*this, path, node));
}

Status DiskFiles::rename(const std::string& from, const std::string& to) {
  if (!exists(from)) return missing(from);
  if (world_.is_planted(Planted::kIndexFirst)) {
    if (to.find(".data-") != to.npos) {
      postponed_.emplace_back(from, to);
      return {};
    }
    for (const auto& other : std::exchange(postponed_, {})) {
      TAGFLOW_RETURN_IF_ERROR(perform(Change::kName, to, false, [&] {
        disk_.name(from, to, disk_.find(from));
      }));
      return perform(Change::kName, other.second, false, [&] {
        disk_.name(other.first, other.second, disk_.find(other.first));
      });
    }
  }
  return perform(Change::kName, to, false,
                 [&] { disk_.name(from, to, disk_.find(from)); });
}

Status DiskFiles::remove(const std::string& path) {
  if (!exists(path)) return missing(path);
  return perform(Change::kRemove, path, false, [&] { disk_.remove(path); });
}

bool DiskFiles::exists(const std::string& path) {
  return disk_.find(path) != nullptr;
}

Status DiskFiles::make_folder(const std::string&) { return {}; }

Status DiskFiles::sync_folder(const std::string& path) {
  return perform(Change::kSync, path, false, [&] {
    if (!world_.is_planted(Planted::kFolderUnsynced)) disk_.sync_folder();
  });
}

Result<std::vector<std::string>> DiskFiles::list(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& [path, node] : disk_.names())
    names.push_back(path.substr(folder.size() + 1));
  return names;
}

bool DiskFiles::is_folder(const std::string& path) {
  return path == Disk::kFolder;
}

bool DiskFiles::is_same_folder(const std::string& a, const std::string& b) {
  return a == b;
}

int64_t DiskFiles::written_at(const std::string& path) {
  const Disk::NodePtr node = disk_.find(path);
  return node == nullptr ? INT64_MIN : node->written;
}

Result<std::unique_ptr<checkpoint::FolderLock>> DiskFiles::lock_folder(
    const std::string& folder) {
  if (disk_.locked_by != 0 && !world_.is_planted(Planted::kNoLock))
    return error(Code::kFailedPrecondition,
                 "[disk] somebody else is saving to \"{}\"", folder);
  return std::unique_ptr<checkpoint::FolderLock>(
      std::make_unique<Lock>(disk_, process_));
}

double DiskFiles::now() { return 1.8e9 + double(stamp()) / 1e9; }

}  // namespace tagflow::net::simulated
