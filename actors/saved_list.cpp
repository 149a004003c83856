#include "actors/saved_list.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "actors/checkpoint.h"
#include "devices/checkpoint/bundle_index.h"
#include "devices/checkpoint/bundle_reader.h"
#include "devices/checkpoint/saved_files.h"

namespace tagflow::actors {
namespace {

namespace fs = std::filesystem;

double seconds_since_1970() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

fs::path normal(const std::string& path) {
  std::error_code unknown;
  return fs::absolute(path, unknown).lexically_normal();
}

// Reads all of it.
bool is_whole(const std::string& prefix) {
  const auto file = checkpoint::BundleReader::open(prefix);
  if (!file.ok() || !(*file)->check_complete().ok()) return false;
  return std::ranges::all_of((*file)->tensors(),
                             [&](const checkpoint::BundleEntry& entry) {
                               return (*file)->read(entry.key).ok();
                             });
}

bool is_in(const std::string& folder, const std::string& prefix) {
  std::error_code unknown;
  return fs::equivalent(checkpoint::folder_of(prefix), folder, unknown);
}

}  // namespace

Status SavedList::read() {
  checkpoint::FileSystem& files = options_.file_system();
  auto state = checkpoint::read_checkpoint_state(folder_, files);
  if (!state.ok()) {
    if (!checkpoint::names_nothing(state.status())) return state.status();
    state = checkpoint::CheckpointState();
  }
  state_ = {};
  state_.last_preserved = state->last_preserved;
  for (size_t i = 0; i < state->all.size(); ++i) {
    const std::string& prefix = state->all[i];
    if (has(prefix)) continue;
    if (files.exists(checkpoint::index_path(prefix))) {
      push(prefix, state->timestamps.empty() ? 0 : state->timestamps[i]);
    } else if (is_left_of_ours(prefix)) {
      static_cast<void>(checkpoint::remove_bundle(prefix, options_));
    }
  }
  const auto newest = checkpoint::find_newest_checkpoint(folder_);
  const Code code = newest.status().code();
  if (code == Code::kNotFound || code == Code::kDataLoss) return {};
  TAGFLOW_RETURN_IF_ERROR(newest.status());
  if (!has(newest->prefix) && has_our_name(newest->prefix))
    push(newest->prefix, seconds_since_1970());
  return {};
}

void SavedList::push(const std::string& prefix, double time) {
  state_.all.push_back(prefix);
  state_.timestamps.push_back(time);
  if (is_other(prefix)) others_.insert(prefix);
}

// As free_prefix() makes them.
bool SavedList::has_our_name(const std::string& prefix) const {
  std::string name = fs::path(prefix).filename().string();
  if (!name.starts_with(name_ + "-")) return false;
  name.erase(0, name_.size() + 1);
  return !name.empty() &&
         name.find_first_not_of("0123456789.") == std::string::npos;
}

bool SavedList::is_other(const std::string& prefix) const {
  if (!is_in(folder_, prefix) || !has_our_name(prefix) ||
      options_.file_system().exists(prefix + ".meta"))
    return true;
  const auto file = checkpoint::BundleReader::open(prefix);
  return !file.ok() || (*file)->find(kStepKey) == nullptr;
}

// Ours have no MetaGraph beside them: what has one is somebody else's, as the
// checkpoints of version 1 are, which have no index.
bool SavedList::is_left_of_ours(const std::string& prefix) const {
  checkpoint::FileSystem& files = options_.file_system();
  return is_in(folder_, prefix) && has_our_name(prefix) &&
         !files.exists(prefix) && !files.exists(prefix + ".meta");
}

bool SavedList::has(const std::string& prefix) const {
  return std::ranges::any_of(state_.all, [&](const std::string& other) {
    return normal(other) == normal(prefix);
  });
}

std::string SavedList::free_prefix(int64_t step) const {
  const std::string first =
      (fs::path(folder_) / fmt::format("{}-{}", name_, step)).string();
  std::string prefix = first;
  checkpoint::FileSystem& files = options_.file_system();
  const auto is_taken = [&] {
    return has(prefix) || files.exists(checkpoint::index_path(prefix)) ||
           files.exists(prefix) || files.exists(prefix + ".meta");
  };
  for (int i = 1; is_taken(); ++i) prefix = fmt::format("{}.{}", first, i);
  return prefix;
}

Status SavedList::write() const {
  return checkpoint::write_checkpoint_state(folder_, state_, options_);
}

Status SavedList::remove_oldest(size_t count) {
  checkpoint::CheckpointState left = state_;
  left.all.clear();
  left.timestamps.clear();
  for (size_t i = 0; i < state_.all.size(); ++i) {
    const std::string& prefix = state_.all[i];
    if (count > 0 && !others_.contains(prefix)) {
      --count;
      TAGFLOW_RETURN_IF_ERROR(checkpoint::remove_bundle(prefix, options_));
    } else {
      left.all.push_back(prefix);
      left.timestamps.push_back(state_.timestamps[i]);
    }
  }
  state_ = std::move(left);
  return {};
}

void SavedList::restored(const std::string& prefix) {
  checkpoint::CheckpointState damaged, whole;
  bool is_newer = false;
  for (size_t i = 0; i < state_.all.size(); ++i) {
    const std::string& one = state_.all[i];
    auto& part = is_newer && !is_whole(one) ? damaged : whole;
    part.all.push_back(one);
    part.timestamps.push_back(state_.timestamps[i]);
    is_newer = is_newer || normal(one) == normal(prefix);
  }
  damaged.all.insert(damaged.all.end(), whole.all.begin(), whole.all.end());
  damaged.timestamps.insert(damaged.timestamps.end(), whole.timestamps.begin(),
                            whole.timestamps.end());
  state_.all = std::move(damaged.all);
  state_.timestamps = std::move(damaged.timestamps);
}

Status SavedList::add(const std::string& prefix) {
  state_.newest = prefix;
  state_.all.push_back(prefix);
  state_.timestamps.push_back(seconds_since_1970());
  Status status = write();
  const size_t ours = state_.all.size() - others_.size();
  if (keep_ == 0 || ours <= size_t(keep_)) return status;
  // Also where the list cannot be written, or the disk would fill.
  Status removed = remove_oldest(ours - size_t(keep_));
  if (removed.ok()) removed = write();
  return status.ok() ? removed : status;
}

}  // namespace tagflow::actors
